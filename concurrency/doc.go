// Package concurrency limits how many requests are in flight at the same time, where requests wait
// for something other than a processor: a database pool, another service, a lock. It learns the
// limit from latency and throughput.
//
// By Little's law, throughput · base latency is the number of requests in service: the
// bandwidth-delay product (BDP) of BBR. The other requests in flight wait in a queue that this
// process cannot see. A key is the name of what requests wait for. Each key has a limit, which is
// in one of four states:
//
//  1. Open. Nothing is limited. Evidence of a queue ends the state: with 16 or more requests in
//     flight, latency grows with the number in flight, to twice its least mean. Where callers send
//     deadlines, latency must also be longer than these deadlines allow.
//  2. Draining. No request starts until one BDP is left. If that takes more than a second, half as
//     many requests start as end.
//  3. Probing. That many stay in flight for a round of 32 answers. If requests took 1.5 times as
//     long before, they waited for one another. Otherwise the key is open again, and for ten
//     seconds about as many in flight are no evidence. The key is also open again if a fifth of
//     the requests that began in the probe got no answer: they waited for none before them, so the
//     backend is slow by itself. The base latency is that of the requests that were answered.
//  4. Limiting. limit = 1.5 · BDP + throughput · 5 ms + 1. Every ten seconds a trial (Draining and
//     Probing) with 0.75 · BDP measures the base latency again. The state ends when the limit has
//     held back no request for ten seconds.
//
// One more limit is for all keys together. Of each eight answers it uses only the quickest, because
// a queue that delays all requests delays that one, too. While this limit is not open, the limits
// of all keys are.
//
// # Invariants
//
//   - Every state has an exit. Draining lasts for at most four times the time in which the queue
//     drains, Probing for twice the time that it should take. A limit that is not needed ends.
//   - Unknown is bounded. When 16 requests have ended since the last answer, and as many as were in
//     flight at the first of them, one request at a time is let in until one is answered. Then the
//     bound doubles for each turn of answers. This holds from the first request on: no healthy
//     period is needed before. Requests that only wait have not ended, and are no evidence.
//   - A drain stops everything for one second, and then half, for four base latencies. The requests
//     that are left then wait in a queue.
//   - Callers bear a queue if the most urgent of them do. Its latency never counts as the usual one.
//   - No request is rejected without evidence that fewer in flight are served sooner.
//   - A request that takes 8 usual latencies, and at least 1 s, while later ones end, is parked: it
//     does not count.
//   - A process that lacks the processor learns nothing. Its clock stands still between two calls of
//     [Limiter.Beat].
//
// # Contract
//
// [Limiter.Admit] decides and admits. Callers with a waiting queue use [Limiter.Ask] to decide and
// [Limiter.Enter] to admit. Each admitted request holds a [spillway.Ticket], which is settled once.
// A Limiter is safe for concurrent use. It has one lock, starts no goroutines, and takes about
// 1,000 bytes for each of at most [Config.Keys] keys. Further keys share one limit until a key that
// is not used gives up its own.
//
// Sources: Cardwell and others, "BBR: Congestion-Based Congestion Control" (ACM Queue 14/5, 2016);
// Little, "A Proof for the Queuing Formula L = λW" (Operations Research 9/3, 1961).
// docs/concurrency.md has pictures and figures.
package concurrency
