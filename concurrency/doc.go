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
//     flight, almost in proportion, to twice the base latency, with 16 or more in flight; or nearly
//     all requests end without an answer, at their deadlines or because their clients hang up.
//  2. Draining. Nothing starts until one BDP is left in flight, or half where nearly none is answered.
//  3. Probing. For a round, that many stay in flight. If the requests before did not take 1.5 times
//     as long, there was no queue: the key is open again. Otherwise three quarters as many
//     are tried, until throughput falls. The latency of the last probe is the base latency.
//  4. Limiting. limit = 1.5 · BDP + throughput · 5 ms + 1. Every ten seconds a short probe at
//     0.75 · BDP measures the base latency again. A limit that was not reached for that long ends.
//
// One more limit does the same for all keys that wait for the same thing: those whose latency grows alike
// with what is in flight. While it is at work, the other keys are apart from it, each with its own limit.
//
// Each file derives one part of that: evidence.go when latency shows a queue; open.go, probe.go and limiting.go what happens
// in each state; search.go why requests without an answer are a reason for a probe; growth.go which keys are alike, and together.go
// what follows from that; quick.go why answers from a cache do not count; flight.go which requests are parked; clock.go what a
// process without a processor learns.
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
// If no later one ends, 16 or more count for ten seconds: the backend hangs. A backend stands still if no answer comes for two usual
// latencies, in which 32 were due. The latency of what was in flight then is no evidence.
//
// A process that lacks the processor measures its own delay, not the backend's. The clock
// of a Limiter therefore stands still while the process does not run: between two heartbeats
// ([Limiter.Beat]), due every 10 ms, it moves by at most 15 ms. A stall explains as long a wait, and for a second after one
// no base latency is learnt: it would be too short. Rounds and probes in which the clock stood still do not count, unless there were no others
// for ten seconds.
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
// must be settled exactly once. The outcomes Abandoned and TimedOut do not count for throughput, and Abandoned
// not for latency. What times out long after its deadline counts like an answer: the work was done. A failure that came
// sooner than the mean does not count for latency: errors of a backend that is down would make its base
// latency too short, and the return to normal look like a queue.
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
