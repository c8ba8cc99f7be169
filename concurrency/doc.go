// Package concurrency limits how many requests are in flight at the same time, where requests wait
// for something other than a processor: a database pool, another service, a lock. It learns the
// limit from latency and throughput.
//
// The base latency is the latency of a request that waits in no queue. By Little's law, throughput
// · base latency is the number of requests in service. BBR calls this product the bandwidth-delay
// product (BDP). The other requests in flight wait in a queue that this process cannot see. A key
// is the name of what requests wait for. Each key has a limit, which is in one of four states:
//
//  1. Open. Nothing is limited. Evidence of a queue ends the state: with 16 or more requests in
//     flight, latency grows with the number in flight, to twice its least recent mean. Where
//     callers send deadlines, latency must also be longer than these deadlines allow.
//  2. Draining. No request starts until one BDP of requests is left in flight. If that takes more
//     than a second, half as many requests start as end.
//  3. Probing. That many requests stay in flight for a round of 32 answers. If requests took more
//     than 1.5 times as long before the trial, they waited for one another: there is a queue.
//     Otherwise the key is open again, and for ten seconds about as many requests in flight are no
//     evidence. The key is also open again if at least a fifth of the requests that began in the
//     probe got no answer: they did not wait for earlier requests, so the backend is slow by
//     itself. The base latency is the latency of the requests that were answered.
//  4. Limiting. limit = 1.5 · BDP + throughput · 5 ms + 1. Every ten seconds a trial (Draining and
//     Probing) with 0.75 · BDP measures the base latency again. The state ends when the limit has
//     held back no request for ten seconds.
//
// One more limit is for all keys together. It looks only at the quickest of each eight requests,
// because a queue in front of all keys delays even the quickest. While this limit is not open, the
// limits of single keys are open.
//
// # Invariants
//
//   - Every state has an exit. Draining lasts for at most four times the time in which the queue
//     drains, Probing for twice the time that it should take. A limit that holds back no request
//     ends.
//   - The number of requests that get no answer is bounded. When 16 requests in a row have ended
//     without an answer, and at least one for each that was in flight when the first of these
//     ended, one request at a time is let in until one is answered. After that the bound grows by
//     one for each answer, so that it doubles when as many requests as it allows are answered. This
//     holds from the first request on: no healthy period is needed before. Requests that still wait
//     have not ended, and do not count here.
//   - A drain lets no request start for one second. After that half as many requests start as end,
//     until four base latencies have passed since the drain began. The requests that are left then
//     wait in a queue, and again none starts.
//   - A queue is no evidence while the deadlines of callers leave time for it. This includes the
//     deadlines of the most urgent callers. The latency of such a queue never counts as the latency
//     without a queue.
//   - No request is rejected without evidence that requests are served sooner when fewer are in
//     flight.
//   - A request that takes 8 usual latencies, and at least 1 s, while later ones end, is parked: it
//     no longer counts.
//   - The Limiter learns nothing while its process gets no processor. Then calls of [Limiter.Beat]
//     are late, and the clock of the Limiter stands still until the next one.
//
// # Contract
//
// [Limiter.Admit] decides and admits. Callers with a waiting queue use [Limiter.Ask] to decide and
// [Limiter.Enter] to admit. Each admitted request holds a [spillway.Ticket], which is settled once.
// A Limiter is safe for concurrent use. It has one lock, starts no goroutines, and takes about
// 1,000 bytes for each of at most [Config.MaxKeys] keys. Further keys share one limit until a key
// that is not used gives up its own.
//
// Sources: Cardwell and others, "BBR: Congestion-Based Congestion Control" (ACM Queue 14/5, 2016);
// Little, "A Proof for the Queuing Formula L = λW" (Operations Research 9/3, 1961).
// docs/concurrency.md has pictures and figures.
package concurrency
