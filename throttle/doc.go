// Package throttle rejects calls at the client once the backend has begun to
// refuse them, so that an overloaded backend spends its time on calls that it
// will serve. It is the adaptive throttling of Site Reliability Engineering,
// chapter 21, "Client-Side Throttling", as a limit on a rate.
//
// # The rule
//
// Equation 21-1 of the source rejects a call with the probability
//
//	p = max(0, (requests − K·accepts) / (requests + 1))
//
// so that requests·(1 − p), what is sent, comes to K times what is accepted. Over a
// window, p is a share of the past: when the load falls or the backend recovers, the
// share is still that of the overload. What a backend can do is a rate. So:
//
//  1. Without refusals there is no limit. More is sent than K·accepts, by
//     MinRequests and a quarter second's calls: limit = K × accepts per second since.
//  2. An accept raises the limit by (K − 1)/Window, a refusal lowers it by 1/Window.
//     It rests where sent = K·accepts, as the equation does.
//  3. More is sent than K·accepts again, by MinRequests and one second's calls: the
//     backend can do less. The limit is measured again, as in 1.
//  4. Nothing or less than 1 call in 200 was accepted: one probe per second. Each accept
//     releases one call and quadruples the limit, up to what it was before.
//  5. A second or more of accepts only, with 1 chance in 256 where one call in K is
//     accepted: the limit doubles per round trip, until nothing is limited.
//  6. A refusal ends 4 and 5: the limit is K × what was accepted per second meanwhile.
//  7. A call is rejected with p = 1 − limit/(calls per second). Those are counted over a
//     quarter second. Where fewer than 25 are made in it, they are the mean of the last 32
//     gaps between calls, which starts again after a gap five times the mean. Until there are
//     two gaps the rate is unknown, and p is 0 while unused credit of the limit lasts.
//
// The second is [Config.ProbeInterval]. The statistics are separate for each
// [spillway.Criticality], so that refusals of batch work never throttle the calls that
// users wait for.
//
// With K = 2 an overloaded backend refuses one call for each that it serves; with
// K = 1.1 one for ten. A smaller K spares a backend to which a refusal costs about as
// much as an answer. A larger one notices sooner that the backend can do more.
//
// # What the rules rest on
//
// Calls count when their outcome is known. Counted when it is sent, each call in
// flight looks refused, and a healthy backend with one second of latency is throttled
// after each start. The price is that trouble is seen one latency later, so calls need
// deadlines: a call without an answer counts as refused ([Routes.Settle] has two
// exceptions), and one that the caller abandoned does not count. Only calls that were sent after a change say anything of
// what came after it: refusals of calls that were sent before the limit fell do not
// lower it again, and accepts of calls that were sent before the last refusal was heard
// do not show a recovery.
//
// A limit that is measured once fits a load that falls: 10 times the capacity, then
// half of it, is half of the limit. It also makes no difference to it how many calls
// were rejected here, so rejecting one costs a few nanoseconds and no lock.
//
// A burst of refusals shorter than the quarter second of rule 1 is no overload, nor is a
// second of accepts from a rate limiter that refills once per second a recovery.
//
// All clients of a backend follow the same rules and see the same share of accepts.
// Their limits add up to K times the capacity, and how they divide it is what each
// measured at the start. A limit below one call per second is led up to that in ten
// windows, so that clients which call seldom come to share alike.
//
// Client-side throttling works badly for clients that send very rarely, as the source
// says: below [Config.MinRequests] refusals there is no limit, and one call per second
// is a probe. Such a client starts from the accept ratio that the server reports
// ([Throttle.Advise]), which knows the calls of all clients. Share one Throttle per backend among all goroutines of a process. Where a
// backend refuses one kind of call and accepts another, give each kind a Throttle of its
// own: one limit holds for all calls that it counts.
package throttle
