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
// The order has reasons. The throttle comes before the in-flight limit so that a call without
// prospects takes no slot. The throttle ignores rejections by the in-flight limit: they say
// something about this process, not the backend. Both are asked again for each attempt,
// because a retry is load like any other, and no slot is held while a call waits for its
// retry. A rejection by a policy here is final for the call: it is not retried and not charged
// to a budget. An attempt that outlives a deadline set by an untrusted client at an edge (of
// package ingress) counts as abandoned, as it says something about that client and not about
// the backend.
//
// A rejection of one customer (429, RESOURCE_EXHAUSTED) does not affect policies that
// customers share. Calls that the backend does not accept are throttled by route, so that one
// route that always fails does not throttle the others: see [Client.DoRoute]. State is kept
// for 256 routes per backend.
//
// The routes of a backend share the retries that its calls earn: a route that has needed more
// retries than another leaves in the budget what the other has asked for recently, so a page that
// is broken cannot use up the retries of the others. That needs a budget that says how much it
// holds, as the budgets of packages retry and budget do, and a throttle that is not off.
//
// What was never sent teaches nothing: package fault says what that is. A call whose context has
// ended is not sent, touches no policy, and ends with the error of its context.
//
// A timeout counts against the backend as a rejection does, unless it has another explanation:
// calls of the route usually take longer than this one waited;
// calls of the route that were sent later were served in less than a tenth of the wait; or the
// call waited 10 s or more while the backend served others, or while the in-flight limit was
// reached. So calls that are kept open until their deadline by design are limited by the
// in-flight limit only, and a backend that answers nothing is throttled.
//
// A stream counts as accepted for the throttle when its answer begins, if the adapter says so
// ([Attempt.Accepted]), and not when it ends.
//
// Outcomes are settled with the time at which the attempt began. Policies treat a time that steps
// back as no time having passed, so the outcome counts at their current time. This saves a second
// clock read, except for timeouts, in the ten seconds after one, and for routes that have failed
// recently.
//
// A slot in flight ends with its attempt, or if the answer goes on ([Attempt.Hold]), with the
// answer or with the context, whichever is first.
//
// [Hedged] sends a second attempt of a call that takes long, within the same policies.
//
// A [Pool] keeps a Client for each of a bounded number of backends.
package egress
