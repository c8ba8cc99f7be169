// Package concurrency limits how many requests are in flight at the same time, where requests wait for something
// other than a processor: a database pool, another service, a lock. It learns the limit from latency and throughput.
//
// By Little's law throughput · base latency is the number of requests in service: the bandwidth-delay product (BDP)
// of BBR. The others wait in an invisible queue. A key is the name of what requests wait for, and each has a state:
//
//  1. Open. Nothing is limited. Evidence of a queue ends that: latency grows with what is in flight, with 16 or more
//     in flight, to twice its least mean; where deadlines are sent, to more than they bear.
//  2. Draining. Nothing starts, until one BDP is left. One that takes more than a second lets half as many start as end.
//  3. Probing. So many stay in flight for a round of 32 answers. If the requests before took 1.5 times as long, they
//     waited for one another. Otherwise the key is open again, and for ten seconds so many in flight are no evidence.
//  4. Limiting. limit = 1.5 · BDP + throughput · 5 ms + 1. Every ten seconds a trial with 0.75 · BDP measures the base
//     latency again. A limit that held back nothing for that long ends.
//
// One more limit is for all keys, by the quickest of each eight answers: a queue of all delays that one, too. While
// it is at work, all keys are open.
//
// # Invariants
//
//   - Every state has an exit. Draining lasts for four latencies at most, Probing for two; a limit that is not needed ends.
//   - Unknown is bounded. When 16 requests have ended since the last answer, and the number that was in flight at the
//     first of them, one at a time is let in until one is answered; then twice as many each turn. That begins with the first
//     request: no time in which all was well is needed. Requests that only wait have not ended, and are no evidence.
//   - A drain stops everything for a second, then half, for four base latencies: what is left then waits in a queue.
//   - A queue that callers bear is one that the most urgent of them bear, and it is never taken for the usual latency.
//   - Nothing is rejected without evidence that fewer in flight are served sooner.
//   - A request that takes 8 usual latencies, and at least 1 s, while later ones end, is parked: it does not count.
//   - A process that lacks the processor learns nothing. Its clock stands still between two calls of [Limiter.Beat].
//
// # Contract
//
// [Limiter.Admit] decides and admits. Callers with a waiting queue use [Limiter.Ask] to decide and [Limiter.Enter] to
// admit. Each admitted request holds a [spillway.Ticket], which is settled once. A Limiter is safe for concurrent use. It
// has one lock, starts no goroutines, and takes about 1,000 bytes for each of at most [Config.Keys] keys. Further
// keys share one limit, until a key that is not used gives up its place.
//
// Sources: Cardwell and others, "BBR: Congestion-Based Congestion Control" (ACM Queue 14/5, 2016); Little, "A Proof for
// the Queuing Formula L = λW" (Operations Research 9/3, 1961). docs/concurrency.md has pictures and figures.
package concurrency
