// Package shed decides at a server which requests run, which wait, and which are
// rejected. It keeps a server at its capacity under any load, for the most critical
// requests first.
//
// # Algorithm
//
//  1. A request runs at once if a processor is free ([State.Runnable] is below
//     [State.Processors]), its [Limit] admits one more, and no waiter could run instead.
//  2. Otherwise it waits in a queue. Requests that wait for a processor, or for the limit
//     of all keys, share one queue. Each key with a separate limit has a separate queue.
//  3. [Shedder.Next] returns the most critical waiter that its limit admits, when a
//     processor is idle. While no request is rejected, the oldest waiter runs first.
//  4. Within a class the oldest waiter runs first. In the queue for a processor the newest
//     runs first while more than a fifth of its class is rejected (adaptive LIFO).
//  5. If a queue is full, the request replaces the last waiter of the lowest class in that
//     queue, or is rejected if no waiter has a lower class, and no caller has more waiters.
//  6. The capacity of a queue shrinks as more of a class and of the classes above it is
//     rejected: see depth.go, and capacity in shed.go. The queue for processors takes up to
//     1,000 requests per processor until there is a standing overload: for 100 ms waiters were
//     admitted, and others still waited. If no processor becomes free for any waiter, other work
//     keeps the processors busy, such as new connections. A rejection would not help then, and
//     requests wait for up to 1 s.
//     A standing queue before a limit takes only as many requests as its load needs, and the
//     classes that get the capacity run in the order of arrival: see standing.go. A request
//     whose deadline is too close to wait behind a limit gets the next slot.
//  7. While a class is rejected, so are all lower classes of the same queue: see cascade.go.
//  8. Utilization above the threshold of a class rejects this class: see thresholds.go.
//  9. A request with a deadline closer than the fastest recent response is rejected,
//     except one per second. Without a Limit no response time is known.
//
// # Fairness
//
// Within a class, the callers that use most are rejected first. [Waiter.Flow] says who the
// caller is. While requests of a class are rejected in a queue:
//
//  1. The use of a caller is its requests at work, integrated over time. Its demand is what it
//     would use if all its requests were admitted: requests times their mean time at work. The
//     time of a key is assumed until a request of the caller has ended.
//  2. The fair share is the level at which demands, cut to it, add up to all use (max-min
//     fairness). Callers that demand no more form a rank above the rest of their class. Ranks
//     are treated as classes: these callers lose nothing to others of their class.
//  3. They need not wait for the slow requests of others: the other callers leave them the
//     places of a limit that they needed at once in the last two seconds, minus the places
//     that become free in time. Where processors are busy, they get one after a time slice.
//  4. While requests below that rank are rejected, a request of another caller that would have
//     to wait, or that finds a place of a limit with a standing queue, is rejected with
//     probability 1 - 2·share/demand. In a full queue, a request replaces a waiter of the same
//     rank whose caller has at least two places more.
//
// A request is not charged while it is suspended or parked, or for the wait behind a limit,
// which is the same for all callers. Callers are counted by name in a table of 512 places,
// 41 kB, for each class in which requests are rejected. A place is for a caller with more than
// about 1/512 of all requests. All other callers together get what eight callers get. So a
// client gains nothing by new names beyond eight shares; with k names in constant use it gets
// k shares. While nothing is rejected, nothing is counted. Use counts as place-time, also where
// processors are short: the processor time of a request is not known in Go.
//
// # Contract
//
// For each request call [Shedder.Arrive]; call [Shedder.Reject] first where a request can
// be rejected before it is read. A request that is to [Run] has a Ticket. Settle it exactly
// once. For a request that is to [Wait] keep its [Waiter] until exactly one of these
// returns it: Next, to run or to be rejected; a later Arrive, as evicted; or
// [Shedder.Expire] or [Shedder.Withdraw], which the caller calls. When the MaxWait of the
// Decision has passed, ask [Shedder.More] before Expire. While [Shedder.Waiting]
// is above zero, call Next after each Settle and Suspend. While Next reports busy, call it
// again whenever a processor is idle.
//
// Sources for fairness: Stoica, Shenker and Zhang, "Core-Stateless Fair Queueing" (SIGCOMM
// 1998), for the share; McKenney, "Stochastic Fairness Queueing" (INFOCOM 1990), for the full
// queue; API Priority and Fairness of Kubernetes, for seats times duration.
//
// Sources: Site Reliability Engineering, chapter 21, "Criticality" and "Utilization
// Signals"; for the order within a class, adaptive LIFO in Facebook's "Fail at Scale". The
// first source compares a smoothed executor load average with thresholds. This package
// uses the current run queue and a bounded waiting queue instead: the smoothed value
// reacts too late to a step of load. docs/shed.md says what each constant does at half and at
// double.
package shed
