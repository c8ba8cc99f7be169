// Package concurrency limits how many requests are in flight at the same time, where
// requests wait for something other than a processor: a database pool, another service,
// a lock. It learns the limit from throughput and latency.
//
// # The algorithm
//
// By Little's law throughput · base latency is the number of requests in service, the bandwidth-delay
// product (BDP) of BBR. The others wait in an invisible queue. Each key (a method or route) has a state:
//
//  1. Open. There is no limit until there is evidence of a queue: latency grows with what is in
//     flight, almost in proportion, to twice the base latency, with 16 or more in flight.
//  2. Draining. Nothing starts until one BDP is left in flight, or requests end too slowly for a queue.
//  3. Probing. For a round of 32 requests or more, that many stay in flight. If the requests before did not take 1.5 times
//     as long, there was no queue: the key is open again. Otherwise three quarters as many
//     are tried, until throughput falls. The latency of the last probe is the base latency.
//  4. Limiting. limit = 1.5 · BDP + throughput · 5 ms + 1. Throughput is that of rounds in which requests
//     waited. Every ten seconds, and when the BDP has halved, a short probe at 0.75 · BDP measures
//     the base latency again. A limit that was not reached for ten seconds is removed.
//
// One more limit does the same for all keys that wait for the same thing. While it is at work, their own are off, and the
// other keys are apart from it: each has its own limit, if there is evidence for one.
//
// # Details
//
// Evidence is the line through latency and the mean in flight of each request: a slope of five standard
// errors and an elasticity of 0.4 to 2 (1 % more in flight makes latency 0.4 to 2 % longer). Above 2
// more have arrived meanwhile, and what each request found counts. Latency that jumps at the same in
// flight is no evidence.
//
// Slow requests are left after a burst, and quick ones end first in a new one: in both cases latency seems to grow with the number in flight.
// So the requests that began in the round of the evidence must show it alone, too. The latency of a probe is compared with these requests,
// including the ones that end in the drain or in the probe. If they took at most 1.5 times the base latency, a limit would not reject them.
//
// Requests of a key need not wait for the same thing: answers from a cache do not. If a quarter of 128 answers or more are
// divided from the others by a gap (two octaves with a sixteenth of the answers of either side), and the others take most of the
// time, in two such windows, then those below the gap are quick. They are not measured: in a growing queue they end while more is in flight than a slow
// one had on average, and would hide it. A limit cannot tell them from the others, and admits the same part of both. So there is
// no limit while the quick ones are more than it would admit. Each new probe asks that again.
//
// A queue is gone after in flight / throughput, and its second half in half the time of the first. A drain that takes twice as long for either
// ends: the rest is in service.
//
// A round lasts whole turns: in each as many requests end as are in flight, because requests that began
// together end together. A first probe is not repeated if a round takes a second. But no probe has more in flight than
// the limit after it answers in half of the time to the deadlines. Throughput is weighted by what was in flight if a round began
// in a quiet time, and is at least what was served while the queue drained. In a probe it is at most that of the probe and its
// drain together: with fewer in flight it cannot grow. Requests waited if the limit was reached, or if they took twice the base
// latency: the caller held others back. 32 requests that take the base latency while few are in flight save a probe.
// Half a BDP and 5 ms of throughput beyond the BDP keep the backend busy between two requests.
//
// A queue delays every request in it by the same time. So two keys wait for the same thing if the latency of both grows
// alike, between half and double, with the number in flight that their requests found. The probe begins with all keys that
// may be alike, and begins again if others join. After it, when latency has fallen as well as grown, keys that differ are apart.
// Those with few requests are judged together, and are apart if even these are too few. Each second a key that is on the wrong
// side to four standard errors changes it. A key that comes again while the limit is at work is apart. New keys are one key
// until it ends, or ten seconds later when nothing limits them: together they may overload what none of them does by itself.
//
// If the probe finds no queue, the evidence of the next ten seconds counts for the key alone, also if the BDP
// of the limit of all keys halves for a second while it is reached: requests that wait elsewhere have its places.
//
// # Departures from BBR, Vegas and Gradient
//
// Those algorithms take longer latency as proof of a queue. A backend can become slower, and a
// key can receive more expensive requests, without any queue: a limit then rejects
// requests that would have been served. Here latency must grow with what is in flight, and
// it must be shorter when less is in flight. Without such a proof nothing is rejected.
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
// ([Limiter.Beat]), due every 10 ms, it moves by at most 15 ms. A stall explains as long a wait, and for a second after one
// no base latency is learnt: it would be too short.
// Nor is a limit removed until ten seconds passed without a stall: requests came late, and did not reach it.
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
// [Limiter.Admit] decides and admits. Callers with a waiting queue use [Limiter.Ask] to decide,
// [Limiter.Enter] to admit, and [Limiter.Rejected] for what they reject. Each admitted request holds a [spillway.Ticket], which
// must be settled exactly once. The outcome Abandoned counts neither for throughput
// nor for latency. A failure that came sooner than the mean does not count for latency: errors of a backend that is
// down would make its base latency too short, and the return to normal look like a queue.
// Between [spillway.Ticket.Suspend] and [spillway.Ticket.Resume] a request
// waits for its client: it does not count, and the time is not part of its latency. A suspended
// ticket is settled like any other. If the process calls [Limiter.Beat] at all, it must do so
// every 10 ms while requests are in flight, and call [Limiter.Rest] when it stops.
//
// The time is an argument of each call. A time before the latest one counts as the latest one.
//
// A Limiter is safe for concurrent use. It has one lock and starts no
// goroutines. It takes about 1,100 bytes for each of at most [Config.Keys] keys. Further keys
// share one limit, until a key was not used for a minute and gives up its place. Ten times a second the key that was unused
// the longest gives it up for one of them, if they had 64 requests: who invents names cannot hide another key.
//
// Sources: Cardwell and others, "BBR: Congestion-Based Congestion Control" (ACM Queue
// 14/5, 2016); Little, "A Proof for the Queuing Formula L = λW" (Operations Research 9/3,
// 1961). docs/concurrency.md has a picture, and what each constant does at half and at double.
package concurrency
