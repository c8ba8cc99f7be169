// Package ratelimit bounds how many requests, or connections, are let in per
// second: it admits one, refuses it, or says how long it has to wait.
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
// will be full again if nobody comes (the theoretical arrival time of the generic
// cell rate algorithm, ITU-T I.371). With T = 1/Rate, the time that one token
// takes,
//
//	debt   = max(0, full − now)
//	tokens = (BurstSeconds − debt) / T
//	admit if debt + T ≤ BurstSeconds, and then full = max(full, now) + T
//
// which is the bucket without a timer, without rounding that adds up, and with a
// queue for nothing: a debt above BurstSeconds is one that is owed to those who
// wait,
//
//	wait = debt + T − BurstSeconds
//
// # The queue
//
// [Limiter.Reserve] takes the token ahead of time and says how long to wait for
// it. Those who wait do so outside, in order, T apart, and at most
// Config.QueueDepth at once; none waits longer than QueueDepth·T. Clients that
// time out while they wait come again, so a useful depth is below Rate times the
// time that they are willing to wait for.
//
// Whoever gives up returns the token, and full moves back by T. The next to
// arrive then finds one wait less. Those who wait already keep the time that they
// were told: to move them up would mean a list and a wake-up for each, to win at
// most T per caller who left. Nobody is admitted before a token for it has
// accrued: let go at the times that were told, the k-th to be admitted never
// comes before the k-th token. The tokens of those who left are used later, so a
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
// Token bucket, burst seconds, queue depth, exemptions and metrics are those of
// the ingress connection and ingress request rate limiters of MongoDB 8.2
// ("Client Backpressure", Terms). Departures: BurstSeconds is 1 and not without
// bound by default, because a bucket that is never empty limits nothing. A change
// of the parameters keeps how full the bucket is, as a share, and does not fill
// it; otherwise a controller that moves Rate every second would grant a burst
// every second.
//
// The state is under a mutex. The admission alone could be one compare-and-swap
// on the time at which the bucket is full; the benchmarks hold such a version, and
// it saves some ten nanoseconds of forty. It was left out because the queue, the
// counts and a change of the parameters would each be a word of their own that
// the others run ahead of: a token charged at the old rate after the rate was
// raised may block the limiter for the time of that token.
package ratelimit
