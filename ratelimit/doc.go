// Package ratelimit limits how many requests, or connections, are admitted per second. It admits a
// call, rejects it, or says how long it has to wait.
//
// # The bucket
//
// A bucket holds up to
//
//	capacity = Rate × BurstSeconds
//
// tokens, starts full, and gains Rate tokens per second. Each admission takes one. In any period of
// w seconds at most capacity + Rate·w calls are admitted.
//
// Tokens are not counted. The limiter remembers one time, at which the bucket will be full again if
// no call comes (the theoretical arrival time of the generic cell rate algorithm, ITU-T I.371).
// With T = 1/Rate, the time for one token,
//
//	debt   = max(0, full − now)
//	tokens = (BurstSeconds − debt) / T
//	admit if debt + T ≤ BurstSeconds, and then full = max(full, now) + T
//
// This is a token bucket without a timer, and without accumulated rounding errors. It also gives a
// queue at no cost: the part of a debt above BurstSeconds is the time that callers have to wait,
//
//	wait = debt + T − BurstSeconds
//
// # The queue
//
// [Limiter.Reserve] takes the token ahead of time and says how long to wait for it. The limiter
// itself does not wait. Callers are admitted in order, T apart. At most Config.QueueDepth wait at
// once, and none waits longer than QueueDepth·T. Clients that time out while they wait come again,
// so QueueDepth should be below Rate times the time for which they wait.
//
// A caller that gives up returns its token: full moves back by T, and the next call to arrive waits
// for T less. Callers that already wait keep their time. Moving them up would need a list and a
// wake-up for each, and would gain at most T for each caller that left. No call is admitted before
// a token for it has accrued: the k-th admission is never earlier than the k-th token. Returned
// tokens are used later, so a short period may see as many more admissions than the bucket alone
// would allow.
//
// # Exemptions
//
// [Exempt] names callers that take no token: networks, identities and prefixes of application
// names. If the protocol shows it, callers that have not authenticated yet can be exempt, too,
// because their handshakes must not compete with the requests of others.
//
// # Source, and departures
//
// Token bucket, burst seconds, queue depth, exemptions and metrics come from the ingress connection
// and ingress request rate limiters of MongoDB 8.2 ("Client Backpressure", Terms). Departures:
// BurstSeconds is 1 by default, and not unlimited, because a bucket that is never empty limits
// nothing. A change of the parameters does not fill the bucket, but keeps its share of tokens;
// otherwise a controller that changes Rate every second would grant a burst every second.
//
// An admission is one compare-and-swap on the time at which the bucket is full. The same word holds
// a number that each Update changes, so that no token is taken at an old rate after the rate has
// changed. A mutex guards the queue and its counts.
package ratelimit
