// Package throttle rejects calls at the client once the backend has begun to reject them, so
// that an overloaded backend spends its time on calls that it will serve. It is the adaptive
// throttling of Site Reliability Engineering, chapter 21, "Client-Side Throttling".
//
// # Invariants
//
//  1. Only calls that were sent, and whose outcome informs ([spillway.Outcome.Informs]), are evidence.
//  2. While the backend accepts one of K calls, nothing is limited.
//  3. While it does not, K calls are sent for each accepted one.
//  4. A backend that accepts nothing gets one probe per second at most, and a client of few calls
//     sends few of them as probes.
//  5. Every state ends: probing with an accept, after one Window and one call at the latest; throttling
//     when no call was rejected for a second; and both after a Window without calls.
//  6. A route or customer is rejected for its own failures, or where most served routes fail. What has
//     no place of its own may be rejected itself, and limits nothing else.
//
// # The rule
//
// Equation 21-1 rejects a call with the probability (requests − K·accepts) / (requests + 1), so that
// K·accepts are sent. Over one window this is a share of the past: after an overload it goes on for
// as long. Here accepts pay for calls instead, from two memories of them:
//
//   - The fast memory is the calls since the backend last accepted one of K. When the calls in it
//     exceed K·accepts by MinRequests and a quarter second's calls (a second's, while there is a
//     limit), the limit is measured from it. If it has no accept, nothing but probes is sent.
//   - The slow memory is decayed counts over the Window. While there is a limit, each accept
//     lets one call follow at once, and K − 1 times the accepts per second of the slow memory
//     are sent besides. Together that is K·accepts. When the load falls and all is accepted,
//     each accept is followed by the next call, and nothing is rejected.
//   - After a second without a rejection by the backend, which has 1 chance in 256 where it accepts
//     one call in K, each accept lets two calls follow: what is sent doubles per round trip.
//   - While only probes are sent the slow memory stands still. The first accept continues from it:
//     the calls of before the outage are sent at once.
//
// The statistics are separate for each [spillway.Criticality], so that rejections of batch work never
// throttle the calls that users wait for. The second is [Config.ProbeInterval].
//
// With K = 2 an overloaded backend rejects one call for each that it serves; with K = 1.1 one
// for ten. A smaller K suits a backend to which a rejection costs about as much as an answer.
// A larger one detects free capacity sooner.
//
// # Evidence
//
// An accept is known at the latest when its answer begins: settle a stream then. Calls need deadlines:
// a call without an answer counts as rejected, unless its wait explains itself ([Routes.Settle]).
// Results of calls that were sent before a limit changed are old news, and ignored. A probe that
// waits for twice as long as rejections take counts as accepted: a long poll has no other result.
//
// Clients that call rarely know little. Such a client starts from the accept ratio that the server
// reports ([Throttle.Advise]). Share one Throttle per backend among all goroutines of a process.
package throttle
