// Package ratelimit limits how many requests, or connections, are admitted per
// second: it admits one, rejects it, or says how long it has to wait.
//
// # The bucket
//
// A bucket holds up to
//
//	capacity = Rate × BurstSeconds
//
// tokens, starts full, and gains Rate tokens a second. Each admission takes one.
// In any stretch of w seconds at most capacity + Rate·w are admitted.
//
// Tokens are not counted. The limiter remembers one time, at which the bucket
// will be full again if no call comes (the theoretical arrival time of the generic
// cell rate algorithm, ITU-T I.371). With T = 1/Rate, the time that one token
// takes,
//
//	debt   = max(0, full − now)
//	tokens = (BurstSeconds − debt) / T
//	admit if debt + T ≤ BurstSeconds, and then full = max(full, now) + T
//
// This is the bucket without a timer and without accumulated rounding errors. It also
// gives a queue at no cost: a debt above BurstSeconds is the time that callers have to wait,
//
//	wait = debt + T − BurstSeconds
//
// # The queue
//
// [Limiter.Reserve] takes the token ahead of time and says how long to wait for
// it. Callers wait outside, in order, T apart, and at most
// Config.QueueDepth at once; none waits longer than QueueDepth·T. Clients that
// time out while they wait come again, so a useful depth is below Rate times the
// time that they are willing to wait for.
//
// A caller that gives up returns the token, and full moves back by T. The next to
// arrive then waits for T less. Callers that already wait keep their time: moving them up would need
// a list and a wake-up for each, and would gain at most T for each caller that left. No call is admitted before a token for it has
// accrued: released at these times, the k-th to be admitted never
// comes before the k-th token. Returned tokens are used later, so a
// short stretch of time may see as many more than the bucket alone would allow.
//
// # Exemptions
//
// [Exempt] names callers that take no token: networks, identities, application
// name prefixes, and, where the protocol knows, callers that have not yet
// authenticated, whose handshake must not compete with the requests of others.
//
// # Source, and departures
//
// Token bucket, burst seconds, queue depth, exemptions and metrics come from
// the ingress connection and ingress request rate limiters of MongoDB 8.2
// ("Client Backpressure", Terms). Departures: BurstSeconds is 1 and not without
// bound by default, because a bucket that is never empty limits nothing. A change
// of the parameters keeps how full the bucket is, as a share, and does not fill
// it; otherwise a controller that moves Rate every second would grant a burst
// every second.
//
// An admission is one compare-and-swap on the time at which the bucket is full. The same
// word holds a number that each Update changes, so that no token is taken at an old rate
// after the rate has changed. The queue and its counts are under a mutex.
package ratelimit
