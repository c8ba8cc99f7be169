// Package egress is the client side of a call: it applies the client policies in the right
// order, so that adapters and callers do not have to.
//
//	call ─► retry ─► each attempt: throttle ─► inflight ─► send ─► outcome
//	          ▲                                                        │
//	          └────────────── backoff, budget ◄────────────────────────┘
//
// A [Client] serves one backend. For each attempt it reads the clock once, asks the throttle
// (which rejects calls that the backend would reject) and then the in-flight limit, sends, and
// settles both with the outcome that package fault derives from the error. Around the
// attempts, the retry strategy decides whether and when to try again, and which budget pays.
//
// The order has reasons. The throttle comes before the in-flight limit, so that a call that it
// rejects takes no slot. The throttle ignores rejections by the in-flight limit: they say something
// about this process, not the backend. Both decide again on each attempt, because a retry is load
// like any other attempt. No slot is held while a call waits for its retry. A rejection by a policy
// here is final for the call: it is not retried and not charged to a budget. An attempt that
// outlives a deadline set by an untrusted client at an edge (of package ingress) counts as
// abandoned, as it says something about that client and not about the backend.
//
// A rejection of one customer (429, RESOURCE_EXHAUSTED) does not affect policies that
// customers share. Calls that the backend does not accept are throttled by route, so that one
// route that always fails does not throttle the others: see [Client.DoRoute]. State is kept
// for 256 routes per backend.
//
// The routes of a backend share the retries that its calls earn. A route that has needed more
// retries than another must leave in the budget what the other has asked for recently, so one
// broken route cannot use up the retries of the others. This needs a throttle that is not off, and
// a budget that reports how much it holds, as the budgets of packages retry and budget do.
//
// No policy learns from a call that was never sent (Unsent in package fault). A call whose context
// has ended is not sent, changes no policy, and ends with the error of its context.
//
// A timeout counts against the backend as a rejection does, with three exceptions: calls of the
// route usually take longer than this one waited; calls of the route that were sent later were
// served in less than a tenth of the wait; or the call waited for 10 s or more while the backend
// served other calls, or while the in-flight limit was reached. So calls that are kept open until
// their deadline by design do not throttle the backend, and a backend that answers nothing is
// throttled.
//
// A stream counts as accepted for the throttle when its answer begins, if the adapter says so
// ([Attempt.Accepted]), and not when it ends.
//
// Outcomes are settled with the time at which the attempt began, which saves a second clock read.
// Policies never go back in time, so an outcome counts at the latest time that they know. The clock
// is read again for timeouts, for ten seconds after one, and for routes that have failed recently.
//
// An in-flight slot is given back when its attempt ends. If the answer goes on ([Attempt.Hold]), it
// is given back when the answer or the context ends, whichever is first.
//
// [Hedged] sends a second attempt of a call that takes long, within the same policies.
//
// A [Pool] keeps a Client for each of a bounded number of backends.
package egress
