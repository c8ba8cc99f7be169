// Package concurrency limits how many requests are in flight at the same time, where
// requests wait for something other than a processor: a database pool, another service,
// a lock. It learns the limit from throughput and latency.
//
// # The algorithm
//
// Each key (a method or route) is open until there is evidence of a queue:
//
//  1. Open. There is no limit. Each request records how many were in flight, and its
//     latency. A line is fitted through these points. Evidence of a queue is a slope
//     that is certain (five standard errors), an elasticity of 0.4 to 2 (1 % more in
//     flight makes latency 0.4 to 2 % longer) and a latency of twice the base latency,
//     with 16 or more in flight. In flight is the mean while the request was. Above an elasticity
//     of 2 more have arrived meanwhile, and what the request found there counts. Latency that
//     jumps at the same in flight is no evidence.
//  2. Draining. Nothing starts until throughput · base latency are left in flight. In a round
//     that began in a quiet time throughput is weighted by what was in flight.
//  3. Probing. For one round that many stay in flight. If throughput fell with what
//     is in flight, the requests did not wait for one another: the key is open again.
//     What was served while it drained is counted as throughput if that is more.
//     Otherwise three quarters as many are tried, until throughput falls by an eighth or
//     a round takes a second. The latency of the last probe is the base latency. A round is
//     32 requests, or whole turns: in each as many end as are in flight. Part of a turn tells
//     nothing, because requests that began together end together.
//  4. Limiting. limit = 1.5 · BDP + throughput · 5 ms + 1, where BDP is
//     throughput · base latency. Throughput is updated after each round in which the limit
//     was reached, or requests took twice the base latency. Every ten seconds, sooner after a
//     probe with few requests, and when the BDP has halved for a second, a short probe at
//     0.75 · BDP measures the base latency again. 32 requests that take as long as that while fewer are
//     in flight confirm it, and save the probe. A limit that was not reached for ten seconds is removed.
//
// By Little's law throughput · base latency is the number of requests in service. It is
// the bandwidth-delay product (BDP) of BBR, where the base latency is called RTprop. All
// requests beyond it wait in an invisible queue: they add latency and no throughput. Half a
// BDP more, and 5 ms of throughput, keep the backend busy between two requests. A second limit
// applies the same rule to all keys together; while it is at work, the limits of the keys are
// off. A key passes its evidence on to that limit if what all keys have in flight explains its
// latency better than what it has in flight itself: then its requests wait for the same thing as
// others, and separate limits would divide it by key and not by class. If the probe finds that
// throughput falls, the evidence of the next ten seconds counts for the key alone, also if the BDP
// of the limit of all keys halves for a second while it is reached: requests that wait elsewhere have its places.
//
// # Departures from BBR, Vegas and Gradient
//
// Those algorithms take longer latency as proof of a queue. A backend can become slower, and a
// key can receive more expensive requests, without any queue: a limit then rejects
// requests that would have been served. Here latency must grow with what is in flight, and
// throughput must not fall when less is in flight. Without such a proof nothing is rejected.
//
// BBR has the least latency of single packets as its base. Requests differ in their
// work, so the base latency here is a mean, measured while nothing waits.
//
// Streams and long polls stay in flight for minutes and do no work. A request that takes longer
// than 8 usual latencies, and at least 1 s, while later ones end, is parked: it no longer counts.
// If no later one ends, 16 or more count for ten seconds: the backend hangs. The latency of what
// was in flight while a backend hung is no evidence.
//
// A process that lacks the processor measures its own delay, not the backend's. The clock
// of a Limiter therefore stands still while the process does not run: between two heartbeats
// ([Limiter.Beat]), due every 10 ms, it moves by at most 15 ms. A stall explains as long a wait.
// While the process uses most of its processors, no other queue is looked for.
//
// # Around a database pool
//
// Call [Limiter.Admit] before the query and [spillway.Ticket.Settle] after it, with the time
// of each; the example of [Limiter] does so. Use the name of the pool as the Key. Requests
// beyond the limit are rejected at once. Package shed adds a waiting queue by criticality.
//
// # Contract
//
// [Limiter.Admit] decides and admits. Callers with a waiting queue use [Limiter.Ask] to decide and
// [Limiter.Enter] to admit. Each admitted request holds a [spillway.Ticket], which
// must be settled exactly once. The outcome Abandoned counts for throughput
// and not for latency. Between [spillway.Ticket.Suspend] and [spillway.Ticket.Resume] a request
// waits for its client: it does not count, and the time is not part of its latency. A suspended
// ticket is settled like any other. If the process calls [Limiter.Beat] at all, it must do so
// every 10 ms while requests are in flight, and call [Limiter.Rest] when it stops.
//
// The time is an argument of each call. A time before the latest one counts as the latest one.
//
// A Limiter is safe for concurrent use. It has one lock and starts no
// goroutines. It takes about 600 bytes for each of at most [Config.Keys] keys. Further keys
// share one limit, until a key was not used for a minute and gives up its place.
//
// Sources: Cardwell and others, "BBR: Congestion-Based Congestion Control" (ACM Queue
// 14/5, 2016); Little, "A Proof for the Queuing Formula L = λW" (Operations Research 9/3,
// 1961). docs/concurrency.md has a picture, and what each constant does at half and at double.
package concurrency
