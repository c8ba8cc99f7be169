// Package inflight bounds how many requests a client may have in flight to one
// backend, and refuses the next one at once instead of letting it queue.
//
// # Rule
//
// A request is admitted if, at that instant, fewer than max_requests are in
// flight; it counts until it ends. The default of 1024 applies even without any
// configuration, 0 refuses everything, and a very high value turns the
// limit off. A refusal is final: it is not retried, and it is counted as a drop
// for the load report.
//
// This is circuit breaking as Envoy does it and as gRPC adopted it in gRFC A32.
// The approved text of A32 is implemented, not the draft of 2020-07: there is
// one counter in the process for each pair of cluster and (EDS) service, shared
// by all who send there, created when first needed and counted by reference
// ([Registry]); and a change of the limit keeps the count, so that with 105 in
// flight and a limit lowered to 100 nothing is admitted until 6 have ended.
//
// # Derivation
//
// Checking the count and raising it in two steps lets two callers pass the
// check together. Raising it first and taking it back when it turns out too high
// lets the transient of a refused caller refuse a third one for which there is
// room. Both go away if the check and the step are one atomic operation, and
// limit changes take part in it if the limit is in the same word:
//
//	word = count:32 | limit:32
//
//	acquire   s = load; if count(s) >= limit(s) refuse; CAS(s, s + 1<<32), else again
//	release   add(-1<<32)
//	change    s = load; CAS(s, count(s) | new limit), else again
//
// A successful CAS proves that the limit it compared with was in force at that
// instant, so once a change has returned no request is admitted by the old limit. A CAS
// fails only because another operation succeeded, so the whole is lock-free;
// release is one instruction and cannot fail.
//
// The count has the upper half so that a release too many borrows from nothing:
// it leaves the limit alone and makes the word negative, which the releaser sees
// in the result that it has anyway, and takes back. In between the limiter seems
// full rather than empty. For that the upper bit must be free, so the highest
// limit is math.MaxInt32; as many requests do not fit in a process.
//
// # Classes
//
// A Limiter that [New] made hands places out by criticality, as far as that is possible
// without a queue. A class leaves free
//
//	while more is offered than four fifths of the limit, measured every 64 requests or 1 s
//	      the most that all higher classes together had in flight in the last 1 to 2 s,
//	      and one for each of their calls that was refused, less what they have now
//	in the minute after a call of a higher class
//	      at least a sixteenth of the limit, rounded down
//
// So calls of one class alone get all places, and while the limit is reached each place
// that is given back goes to the highest class that has calls for it. The Limiters of a [Registry]
// do not tell classes apart, as A32 does not.
//
// Source: gRFC A32 "xDS Circuit Breaking"; Envoy, CircuitBreakers.Thresholds.
// Departure: the limit belongs to the counter and not to each channel, so that
// all who share the counter compare with the same limit.
//
// # What it does not do
//
// A client ends its request at the deadline, while the server may work on. A
// limit here does not replace one at the server.
package inflight
