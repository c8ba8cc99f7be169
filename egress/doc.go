// Package egress is the client side of a call: it puts the client policies in
// order, so that no adapter and no caller has to.
//
//	call ─► retry ─► each attempt: throttle ─► inflight ─► send ─► outcome
//	          ▲                                                        │
//	          └────────────── backoff, budget ◄────────────────────────┘
//
// A [Client] serves one backend. For each attempt it reads the clock once, asks
// the throttle (refuse what the backend would refuse) and then the in-flight
// limit (bound what is under way), sends, and settles both with what package
// fault makes of the error. Around the attempts the retry strategy decides
// whether, when, and at whose expense to try again.
//
// The order has reasons. The throttle comes before the in-flight limit so that
// a call which is hopeless takes no slot. A refusal by the in-flight limit
// teaches the throttle nothing: it says something about this process, not the backend.
// Both are asked again for each attempt, because a retry is load like any other,
// and no slot is held while a call waits for its retry. A refusal made here is
// final for the call: it is not retried and charged to no budget. An attempt that
// outlives a deadline which an untrusted client has set at an edge (of package ingress) counts
// as abandoned, as it says something about that caller and not about the backend.
//
// A refusal of one customer (429, RESOURCE_EXHAUSTED) informs no policy that customers
// share. Calls that the backend does not accept are throttled by route, so that one route
// that always fails does not have the others throttled: see [Client.DoRoute]. State is kept
// for 64 routes of each backend.
//
// A timeout counts against the backend as a refusal does, unless something else explains
// it: calls of the route that were sent later were served in less than a tenth of the
// wait; or the call waited 10 s or more while the backend served others, or while the
// in-flight limit was reached. So calls that are kept open until their deadline by design
// are bounded by the in-flight limit only, and a backend that answers nothing is throttled.
//
// Outcomes are settled with the time at which the attempt began: policies treat
// time that steps back as none, so the outcome counts into their present, and a
// second clock read is saved but for timeouts and routes that have failed recently.
//
// [Hedged] sends a second attempt of a call that takes long, within the same policies.
//
// A [Pool] keeps a Client for each of a bounded number of backends.
package egress
