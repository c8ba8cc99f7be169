// Package throttle rejects calls at the client once the backend has begun to reject them, so
// that an overloaded backend spends its time on calls that it will serve. It is the adaptive
// throttling of Site Reliability Engineering, chapter 21, "Client-Side Throttling", as a limit
// on a rate.
//
// # Invariants
//
//   - Only calls that were sent, and whose outcome informs ([spillway.Outcome.Informs]), are
//     evidence.
//   - While the backend accepts one of K calls, nothing is limited. While it does not, K calls are
//     sent for each accepted one.
//   - A backend that accepts nothing gets one probe per second at most. A client of few calls sends
//     one of nine calls as a probe. A probe is one call, or the calls that one task makes at once.
//   - Every limit ends when the backend accepts all calls, and after a Window without outcomes.
//   - A route or customer is rejected for its own failures, or where most served routes fail. A
//     name for which there is no room can be rejected, and limits no other name ([Routes]).
//
// # The rule
//
// Equation 21-1 of the source rejects a call with the probability
//
//	p = max(0, (requests − K·accepts) / (requests + 1))
//
// so that the calls sent, requests·(1 − p), are K times the calls accepted. Over a window, p is a
// share of the past: when the load falls or the backend recovers, the share is still the one of the
// overload. The capacity of a backend, in contrast, is a rate. So the package limits a rate:
//
//  1. Without rejections by the backend there is no limit. When the calls sent exceed K·accepts by
//     MinRequests and the calls of a quarter second: limit = K × accepts per second since the
//     excess began.
//  2. An accept raises the limit by (K − 1)/Window, a rejection lowers it by 1/Window.
//     It is stable where sent = K·accepts, as in the equation.
//  3. When the calls sent exceed K·accepts again, by MinRequests and the calls of one second, the
//     capacity of the backend has fallen. The limit is measured again, as in 1.
//  4. When nothing or less than 1 call in 200 was accepted: one probe per second. A client of few
//     calls sends the first call after that second as a probe. While probes fail, it then sends one
//     call in 2, after that one in 4, one in 8, and from then on one in 9. Each accept releases one
//     call and quadruples the limit, up to its earlier value or to 1 in 50 of the calls, whichever
//     is more. While there is a limit, a call without a result counts as accepted after one second,
//     or after twice the longest time that a rejection took in the last Window, if that is longer.
//     It does not count so if a call timed out in that Window.
//  5. When the backend has accepted all calls for a second or more: the limit doubles per round
//     trip, until nothing is limited. There must be so many accepts that a backend which still
//     accepts only one call in K gives that result with a chance of 1 in 256 at most.
//  6. In 4 and 5, each accept offsets K − 1 rejections, and at most the last 5 accepts do so. When
//     more calls are rejected, the recovery ends: the limit is K × the calls accepted per second
//     meanwhile.
//  7. A call is rejected with p = 1 − limit/(calls per second). The rate of calls is
//     counted over a quarter second. With fewer than 25 calls in it, the rate is derived
//     from the mean of the last 32 gaps between calls, which starts again after a gap of
//     five times the mean. Before there are two gaps the rate is unknown, and p is 0
//     while unused credit of the limit lasts.
//  8. Which calls are rejected is decided by their tasks: first calls of tasks without progress,
//     and of these the lowest levels. Among calls without a level random decides.
//  9. A task that makes several calls at once abandons the calls already sent when another one is
//     rejected here. Then no call would ever have a result. So when every call sent since the last
//     outcome was abandoned, the next probe is every call within 10 ms, up to 100 calls.
//
// The second in these rules is [Config.ProbeInterval]. The statistics are separate for each
// [spillway.Criticality], so that rejections of batch work never throttle the calls that users wait
// for.
//
// With K = 2 an overloaded backend rejects one call for each that it serves; with K = 1.1 one for
// ten. A smaller K suits a backend for which rejections are about as expensive as answers. A larger
// one detects free capacity sooner.
//
// So whatever happened before, when the backend accepts all calls, nearly all are sent after
// some seconds and some round trips. A client whose limit is below one call per second needs
// the time for 8 calls at that limit, with K = 2: up to a minute.
//
// # What the rules rest on
//
// An accept is a request that the backend has accepted. That is known at the latest when its
// answer begins, not when it ends: settle a stream then. If a call counted when it was sent, each
// call in flight would look rejected, and a healthy backend with one second of latency would be
// throttled after each start. The price is that trouble is seen one latency later, so calls need
// deadlines: a call without an answer counts as rejected ([Routes.Settle] has three exceptions),
// and one that the caller abandoned does not count.
//
// A long poll has no result for a long time. But a rejection costs less than the work, so it comes
// quickly. That is why a call without a result counts as accepted after some time (rule 4). If it
// is rejected later, this accept is taken back, and if there was no other accept since the limit
// fell, there is one probe per second again. Where calls time out, a long wait says nothing. So a
// backend that accepts calls again, but does not answer them, gets calls until the first of them
// time out, as it does when it stops answering while nothing is limited. Then it gets one probe per
// second.
//
// Only calls that were sent after a change are evidence of its effect: rejections of calls that
// were sent before the limit fell do not lower it again, and accepts of calls that were sent before
// the last rejection arrived do not show a recovery.
//
// A limit that is measured once is also right when the load falls: from 10 times the capacity to
// half of it, which is then below the limit. It does not depend on how many calls were rejected
// here, so rejecting one costs a few nanoseconds and no lock.
//
// A burst of rejections shorter than the quarter second of rule 1 is not an overload. A second
// of accepts from a rate limiter that refills once per second is not a recovery.
//
// All clients of a backend follow the same rules and see the same share of accepts. Their
// limits add up to K times the capacity; each client's part is what it measured at the start.
// A limit below one call per second is raised to one call per second within ten windows, so
// that clients which call rarely converge to equal shares.
//
// Client-side throttling works badly for clients that send very rarely, as the source says:
// below [Config.MinRequests] rejections there is no limit, and one call per second is a probe.
// Such a client starts from the accept ratio that the server reports ([Throttle.Advise]),
// which covers the calls of all clients. Share one Throttle per backend among all goroutines
// of a process. If a backend rejects one kind of call and accepts another, use [Routes].
package throttle
