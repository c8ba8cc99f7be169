// Package shed decides at a server which requests run, which wait, and which are
// rejected. It keeps a server at its capacity under any load, for the most critical
// requests first.
//
// # Algorithm
//
//  1. A request runs at once if a processor is free, its [Limit] admits one more, and no waiter
//     could run instead. Otherwise it waits, in one queue for the processors and the limit of all
//     keys, or in that of its key.
//  2. When a processor is idle, [Shedder.Next] returns the most critical waiter that its limit
//     admits. Within a class it is the one whose task has made most progress, and of several such
//     the oldest. While nothing is rejected, class does not count.
//  3. In a full queue a request replaces the lowest waiter, or is rejected if none is below it. The
//     lowest waiter is that of the lowest class, and within a class of the task with least progress
//     and the lowest [spillway.Level] (order.go). So levels decide which requests are rejected, and
//     time decides which run next: the requests that run have not waited for long. The queue
//     becomes shorter when more is rejected (depth.go); before a limit its load decides
//     (standing.go). An overload stands when requests had to wait for 100 ms, while others were let
//     in. Until then up to 1,000 requests per processor may wait, for 1 s: a burst, or other work
//     that keeps the processors busy, is no overload (busy.go).
//  4. While a class is rejected, so are all lower ones of that queue (cascade.go). Utilization
//     above the threshold of a class rejects it (thresholds.go). A request whose deadline is too
//     close to wait behind a limit is the next to run; one whose deadline is closer than the
//     fastest recent response is rejected, except one per second.
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
//     fairness). Callers within it form a rank above the rest of their class. Ranks
//     are treated as classes: these callers lose nothing to others of their class.
//  3. They need not wait for the slow requests of others: the other callers leave them the
//     places of a limit that they needed at once in the last two seconds, minus the places
//     that become free in time. Where processors are busy, they get one after a time slice.
//  4. While requests below that rank are rejected, a request of another caller that would have
//     to wait, or that finds a place of a limit with a standing queue, is rejected with
//     probability 1 - 1.5·share/demand.
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
// [Shedder.Expire] or [Shedder.Withdraw], which the caller calls: Expire when the MaxWait of
// the Decision has passed, Withdraw when the client has left. While [Shedder.Waiting] is above
// zero, call Next after each Settle and Suspend. While Next reports busy, call it again whenever a
// processor is idle.
//
// Sources for fairness: Stoica, Shenker and Zhang, "Core-Stateless Fair Queueing" (SIGCOMM
// 1998), for the share; API Priority and Fairness of Kubernetes, for seats times duration.
//
// # Whole tasks
//
// A user's task needs several calls, and the calls of a task that fails later were wasted. If each
// call were rejected at random, a task of five calls would succeed half as often, compared with one
// of two. Two rules keep tasks whole:
//
//   - Calls of a task that has made more progress run before those of a task that has made less,
//     and are rejected after them. While an overload stands behind a limit, a new task begins only
//     when no other task needs the slot.
//   - All calls of a task have the same level, in all services. So the same tasks are rejected
//     everywhere.
//
// Within a class the order of arrival decides who runs next, not the level, so that the calls that
// a task makes at once run together: where the newest or the highest level runs first, later tasks
// cut in, and of tasks of ten calls half as many are done.
//
// Sources: Site Reliability Engineering, chapter 21, "Criticality" and "Utilization Signals"; Zhou
// and others, "Overload Control for Scaling WeChat Microservices" (SoCC 2018), for levels. The
// first source compares a smoothed executor load average with thresholds. This package uses the
// current run queue and a bounded waiting queue instead: the smoothed value reacts too late to a
// step of load. docs/shed.md says what each constant does at half and at double.
package shed
