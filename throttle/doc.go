// Package throttle refuses calls at the client once the backend has begun to
// refuse them, so that an overloaded backend spends its time on calls that it
// will serve. It is the adaptive throttling of Site Reliability Engineering,
// chapter 21, "Client-Side Throttling", made to recover quickly.
//
// # The equation
//
// Of the calls that ended during the last [Config.Window] the throttle knows
//
//	requests   all calls that the application wanted to make, including those
//	           that this throttle refused
//	accepts    those that the backend took on
//
// and refuses a new call with the probability (equation 21-1)
//
//	p = max(0, (requests − K·accepts) / (requests + 1))
//
// While the backend accepts everything, requests = accepts and p is 0. Once it
// does not, requests run ahead of accepts until p holds what is sent at K times
// what is accepted, whatever the load: sent = requests·(1−p) ≈ K·accepts. With
// K = 2 an overloaded backend refuses one call for each that it serves; with
// K = 1.1 one for ten. A smaller K spares a backend to which a refusal costs
// about as much as an answer; a larger one notices sooner that there is room.
//
// The statistics are separate for each [spillway.Criticality], so that refusals
// of batch work never throttle the calls that users wait for.
//
// # Where this departs from the source, and why
//
// Calls are counted when their outcome is known, and refusals made here at once.
// Counting a call when it is sent makes every call in flight look refused: a
// healthy backend that takes a second to answer is then throttled after each
// start. The price is that trouble is seen one latency later, so calls need
// deadlines; an answer that never came counts as not accepted. Calls that the
// caller abandoned count as nothing, and nor should those for which a caller who is
// not trusted left too little time, as package egress has it: a stranger could
// have the calls of all others refused.
//
// The window is 30 s, not two minutes. In the steady state the length makes no
// difference; it only decides how long the past is believed.
//
// Below [Config.MinRequests] in the window there is no throttling: a handful of
// calls says nothing about a backend.
//
// The equation alone does not recover. When a backend comes back after an outage
// that was longer than the window, p is nearly 1, calls get through about once
// per window, and accepts grow by a factor of little more than K per window:
// quarters of an hour with K = 2, hours with K = 1.1. A cap on p does not help
// much and makes the equation wrong under heavy load; not counting local
// refusals recovers at once and never throttles enough (sent settles at the
// square root of K times the load). So three rules are added, which leave the
// steady state alone because there they do not apply. Their one time scale is
// [Config.ProbeInterval].
//
// Probe. While there is no accept in the window, or of late, in a tenth of it, not
// one for 200 requests, the equation has next to nothing to go by, and one call per
// interval is let through.
//
// Streak. An accepted call extends the streak if it was sent after the last
// refusal was heard of; any refusal ends it. A streak is evidence that the
// statistics are of another time: if the backend still accepted the share f
// that the window shows (at most 1/K, what the equation settles at), n accepts
// in a row would be seen with probability f^n. Once that is less than 1 in 4096,
// and the streak is one interval old, which no burst of a rate limiter is, the
// backend has changed, and what it refused before is forgotten: backend and
// local refusals fade with the interval as time constant for as long as the
// streak lasts.
//
// Slow start. During a streak that began with a probe (the backend was down, or as
// good as down), or that has become evidence, each accepted call releases one
// further call past the equation. What is sent at most doubles per round trip, and
// the first refusal ends it.
//
// Client-side throttling works badly for clients that send very rarely; share
// one Throttle per backend among all goroutines of a process. A client that has
// few calls in the window starts from the accept ratio that the server reports
// ([Throttle.Advise]), which knows the calls of all clients.
package throttle
