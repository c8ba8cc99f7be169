// Package inflight limits how many requests a client may have in flight to one backend, and
// rejects the next one at once instead of letting it queue.
//
// # Rule
//
// A request is admitted if, at that instant, fewer than MaxInFlight are in flight; it counts until
// it ends. The default of 1024 applies even without any configuration, 0 rejects everything, and a
// very high value turns the limit off. A rejection is final: it is not retried, and it counts as a
// drop in the load report.
//
// This is circuit breaking as in Envoy, which gRPC adopted in gRFC A32. It implements the approved
// text of A32, not the draft of 2020-07. The process has one counter for each pair of cluster and
// (EDS) service. All callers of that pair share it. It is created when first needed, and
// reference-counted ([Registry]). A change of the limit keeps the count: with 105 in flight and a
// limit lowered to 100, nothing is admitted until 6 have ended.
//
// # Derivation
//
// Checking the count and raising it in two steps lets two callers pass the check together. Raising
// it first, and lowering it again if it is too high, can reject a third caller although a slot is
// free, because a rejected caller counts for a moment. One atomic operation for the check and the
// step avoids both. Limit changes are part of it if the limit is in the same word:
//
//	word = count:32 | limit:32
//
//	acquire   s = load; if count(s) >= limit(s) reject; CAS(s, s + 1<<32), else again
//	release   add(-1<<32)
//	change    s = load; CAS(s, count(s) | new limit), else again
//
// A successful CAS proves that the limit it compared with was in force at that instant, so after a
// change has returned no request is admitted by the old limit. A CAS fails only because another
// operation succeeded, so the algorithm is lock-free; release is one instruction and cannot fail.
//
// The count is in the upper half, so that one release too many does not borrow from the limit. It
// makes the word negative instead; the caller sees that in the result, and takes the release back.
// Until then the limiter seems full rather than empty. For that the upper bit must be free, so the
// highest limit is math.MaxInt32; that many requests do not fit in a process.
//
// # Classes
//
// A Limiter made by [New] assigns slots by criticality, as far as that is possible without a queue.
// A class must leave free
//
//	while more is offered than four fifths of the limit, measured every 64 requests or 1 s
//	      the most that all higher classes together had in flight in the last 1 to 2 s,
//	      and one for each of their calls that was rejected, less what they have now
//	in the minute after a call of a higher class
//	      at least a sixteenth of the limit, rounded down
//
// So calls of one class alone get all slots. While the limit is reached, each released slot goes to
// the highest class that has calls for it. The Limiters of a [Registry] ignore classes, as in A32.
//
// Source: gRFC A32 "xDS Circuit Breaking"; Envoy, CircuitBreakers.Thresholds. Departure: the
// limit belongs to the counter and not to each channel, so that all callers that share the
// counter compare with the same limit.
//
// # Answers that go on
//
// A slot that is kept for an answer ([Hold]) is released when the answer or its context ends,
// whichever is first. Even if all slots are kept for forgotten answers, the next request after the
// end of their contexts is admitted.
//
// # What it does not do
//
// A client stops counting a request at its deadline, while the server may still work on it. A
// limit here does not replace one at the server.
package inflight
