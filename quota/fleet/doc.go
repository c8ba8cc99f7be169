// Package fleet holds each customer to one quota over all tasks of a service. It is a
// [quota.Allocator] that shares a quota among tasks through a [Board], for example a Redis server.
//
// # Who does what
//
// Each task has a [Fleet]. Once per interval the task stores a report on the board and receives the
// levels, in one round trip for all customers. Calls are decided in the task, by the last levels:
// no call waits for the board. One task leads. The board elects it, and numbers the elections with
// an epoch; what a former leader publishes in an old epoch is rejected. The leader has a [Table],
// which computes the levels from all reports. The board stores bytes and has the only clock that
// counts. Clocks of different hosts are never compared.
//
// # From demand to levels
//
// A task reports for each customer what it uses, as a sum that only this task resets, and the
// demand per second and class, smoothed:
//
//	w += a·(n/dt − w),  a = clamp(m/24, dt/T, 1)
//	T  = clamp(2·dt/m, 2 s, 20 s),  m = max(n, w·dt) if n ≥ 2, and else w·dt
//
// with n the cost offered in dt. Demand of tens of calls is followed at once, because its noise is
// below 20 %. Rare demand is averaged over the time of two calls, but over at least 2 s and at most
// 20 s. One call alone shows no rate. A task with a mean demand of w needs more than w, for bursts
// of independent arrivals:
//
//	ample(w) = 1.1·w + 1.5·min(w, √w)
//
// Between calls that are further apart than leases, a bucket refills at the share for the demand
// since the last lease. It does not refill at the share of the time when that lease was granted,
// because the demand had faded by then.
//
// The Table gives each customer a rate R: its limit, or its share of the capacity by weighted
// max-min over the demand of customers, and never less than its fair share. The Table also keeps
// the bucket that one single task would have. It steers the sum of all grants, R', so that this
// bucket is three quarters used under overload:
//
//	debt  = clamp(debt + used − R·dt, 0, 2·B·R + LeastDepth·tasks)
//	depth = max(B·R, LeastDepth·√tasks)
//	R'    = clamp(R + (¾·depth − debt)/S, ½·R, 1¾·R)
//
// S is 5 intervals, and at least a second. A report takes at most 3 intervals from demand to grant,
// and such a loop does not oscillate if S is well above that. B is the burst of the quota, and at
// least S. The other term of depth is for limits of a few calls per second or less: there, single
// calls in many tasks vary by more than a burst. So all errors are paid back: of the tasks' own
// buckets, of demand that moves, and of delayed reports. The debt is part of the levels; the next
// leader continues with it.
//
// Then R' is divided by class, from the highest class down. A class gets all it needs while Σ
// ample(w) over tasks is below what remains. The first class that does not fit is the marginal
// class. It gets the level L at which the shares of the tasks add up:
//
//	Σ min(ample(w), L) = what remains
//
// Lower classes are rejected in all tasks. If no class is marginal, what remains is divided among
// the tasks. The levels are the same for all tasks. Each task computes its share from its own
// demand, which is newer than what the leader knew:
//
//	rate = Σ ample(w) of higher classes + min(ample(w), L)
//
// It is at least a tenth of R/tasks, so that the first calls in a task find a bucket. It is at most
// the customer's limit. Levels never reject CRITICAL and CRITICAL_PLUS entirely, which limits the
// harm that a wrong board can do.
//
// # Quiet customers
//
// Traffic between tasks and board grows only with the customers that come near their limits. A task
// does not report a customer whose demand in it is at most half of an equal share, R/2 divided by
// the number of tasks. Levels leave out a customer if all reports together need at most R/2. So
// what tasks do not report and what levels leave out is at most R together. To a customer that a
// task does not report, it grants R/tasks. To a customer that it has reported, and that levels
// leave out, it grants what it would grant by the level of a demand of R/2. When levels have a
// customer, all tasks with calls of it report it.
//
// This does not apply if the rate of a customer depends on others, with Capacity or UnlistedTotal:
// then all customers with demand are in the levels. UnlistedTotal is also an account, with a level
// like that of a listed customer, for the bucket that all unlisted customers of a task share.
//
// # Without new levels
//
// A task without new levels keeps its last share for Hold. Then its share moves to R/tasks, which
// it reaches at the end of Grace. The leader assumes exactly this of a silent task, so both
// together stay at the limit until the end of Grace. After that the leader gives the share of the
// silent task to the others, and counts it as used until they have it. A task that never received
// levels grants limit/Tasks.
//
// A task that leaves removes its report. If the board has lost a report, for example because it is
// a server that evicts keys when it lacks memory, the task counts as silent.
//
// A task that crashes looks like one that is cut off. But if the usual number of tasks reports,
// others have replaced the silent ones, and the leader forgets these at once, the longest silent
// first. A task that crashes again and again under new names holds one share, not many.
//
// A new leader learns before it publishes: for two intervals, and until all tasks that the last
// leader knew have reported, but at most for Hold. Until then the tasks keep what they have.
//
// # Regions
//
// If round trips between regions take 100 ms, each region has its own board, and Config.Above: a
// Fleet whose tasks are regions. The leader of a region asks it for the rate R of each customer in
// this region, with the demand of all its tasks by class and what they have used. It divides R
// among the tasks as it would divide a limit. So all of the above holds twice: among regions with
// the interval, Hold and Grace of Above, and within a region with those of its tasks. A region that
// is cut off keeps its share, and has limit/regions from Grace of Above on. No task waits for
// another region. One board for all regions would cost each task a round trip between regions, and
// a region that is cut off would lose the levels.
//
// # Limits
//
// Admission is approximate within about three intervals: demand that moves to idle tasks is
// admitted from their buckets, up to one burst of the whole limit, and paid back in the following
// seconds. If a quota is below about 3 calls per second and task, single calls decide, and a
// customer that was idle may have up to LeastDepth·tasks in one burst. After Grace, tasks that are
// cut off from the board use up to R/tasks each in addition to the limit. Tasks that can write to
// the board trust each other.
//
// # Source
//
// Site Reliability Engineering, chapter 21, "Per-Customer Limits": usage is summed up over all
// tasks, and limits are pushed to each. Levels instead of shares, debts in the levels, and the
// order of classes over all tasks are additions.
package fleet
