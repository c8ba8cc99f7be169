// Package fleet holds each customer to one quota over all tasks of a service. It is
// a [quota.Allocator] that shares a quota among tasks through a [Board], which is
// for example a Redis server.
//
// # Who does what
//
// Each task has a [Fleet]. Once per interval the task leaves a report on the board
// and takes home the levels, in one round trip for all customers. Calls are decided
// in the task, from the last levels: the board is never asked on the path of a call.
// One task leads. The board elects it, and numbers the elections with an epoch; what
// a former leader publishes under an old epoch is rejected. The leader has a [Table],
// which computes the levels from all reports. The board stores bytes and has the only
// clock that counts. Clocks of different hosts are never compared.
//
// # From demand to levels
//
// A task reports for each customer what it uses, as a sum that only this task resets,
// and what it is asked for per second and class, smoothed:
//
//	w += a·(n/dt − w),  a = clamp(m/24, dt/T, 1)
//	T  = clamp(2·dt/m, 2 s, 20 s),  m = max(n, w·dt) if n ≥ 2, and else w·dt
//
// with n the cost offered in dt. What is counted in tens is followed at once, for its
// noise is below 20 %. What is rare is averaged over the time of two calls, but for 2 s at
// least, and 20 s at most. One call alone says nothing about a rate. A task with a
// demand of w on average needs more than w, for bursts of independent arrivals:
//
//	ample(w) = 1.1·w + 1.5·min(w, √w)
//
// Between calls that are further apart than leases, a bucket refills at the share of the demand since the
// last lease, and not at the share when that lease was granted: the demand had faded by then.
//
// The Table gives each customer a rate R: its limit, or its share of the capacity by
// weighted max-min over the demand of customers, and never less than its fair share. It
// keeps the bucket that one single task would have, and steers the sum of all grants,
// R', such that the bucket is three quarters used under overload:
//
//	debt  = clamp(debt + used − R·dt, 0, 2·B·R + LeastDepth·tasks)
//	depth = max(B·R, LeastDepth·√tasks)
//	R'    = clamp(R + (¾·depth − debt)/S, ½·R, 1¾·R)
//
// S is 5 intervals, and at least a second: a report takes at most 3 intervals from
// demand to grant, and such a loop does not swing if S is well above that. B is the
// burst of the quota, and at least S. Where a limit is a few calls per second or less, single calls
// in many tasks vary by more than a burst, hence the other term of depth. So errors of the tasks' own buckets, of demand
// that moves, and of delayed reports are paid back. The debt is part of the levels; the
// next leader goes on with it.
//
// Then R' is handed out by class, from the top. A class gets all it needs while
// Σ ample(w) over tasks is below what remains. The first that does not fit is the
// marginal class. It gets the level L at which the shares of the tasks add up:
//
//	Σ min(ample(w), L) = what remains
//
// Lower classes are rejected in all tasks. If no class is marginal, what remains is
// divided among the tasks. The levels are the same for all tasks. Each task finds its
// share from its own demand, which is newer than what the leader knew:
//
//	rate = Σ ample(w) of higher classes + min(ample(w), L)
//
// It is at least a tenth of R/tasks, so that the first calls that come to a task find
// a bucket. It is at most the customer's limit. Levels never reject CRITICAL and
// CRITICAL_PLUS entirely: a board that is wrong can do less harm that way.
//
// # Quiet customers
//
// Traffic follows the customers that come near their limits. A task does not report a
// customer whose demand there is at most half of an equal share, R/2 divided by the number
// of tasks. Levels leave out a customer if all reports together need at most R/2. What
// tasks do not report and what levels do not have is then at most R together. A task grants
// R/tasks to a customer that it does not report. To a customer that it has reported, and
// that levels leave out, it grants what it would grant by the level of a demand of R/2. When
// levels have a customer, all tasks with calls of it report it. This does not apply where the rate of a customer depends on
// others, with Capacity or UnlistedTotal: there all customers with demand are in the levels.
// UnlistedTotal is also an account of its own, with a level like that of a listed customer, for
// the bucket that all unlisted customers of a task share.
//
// # Without a word
//
// A task keeps its last share for Hold. Then its share moves to R/tasks, which it has
// at the end of Grace. The leader expects exactly this of a task that is silent, so
// that both together stay at the limit until the end of Grace. After that the leader
// gives the share of the silent task to the others, and counts it as used until they
// have it. A task that never had a word grants limit/Tasks.
//
// A task that leaves has its report removed. A report that the board has lost, such as a server that evicts keys
// because it lacks memory, is that of a silent task.
//
// A task that crashes looks like one that is cut off. But if as many tasks report as usual,
// others have replaced the silent ones, and the leader forgets these at once, the longest silent
// first. A task that crashes again and again under new names holds one share, not many.
//
// A new leader learns before it publishes: two intervals, until all tasks that the last leader
// knew have reported, but at most Hold. Meanwhile the tasks keep what they have.
//
// # Regions
//
// Where round trips take 100 ms, each region has a board of its own, and Config.Above: a Fleet whose tasks are regions. The
// leader of a region asks it for the rate R of each customer in this region, with the demand of all its tasks by class and
// what they have used, and divides R among the tasks as it would divide a limit. So all of the above holds twice: among regions with the
// interval, Hold and Grace of Above, and within a region with those of its tasks. A region that is cut off
// keeps its share, and has limit/regions from Grace of Above on. No task waits for another region.
// One board for all regions would cost a round trip between regions for each task, and a cut would take the levels away.
//
// # Limits
//
// Admission is approximate within about three intervals: demand that comes to idle
// tasks is admitted from their buckets, up to one burst of the whole limit, and paid
// back in the seconds after. Where a quota is below about 3 calls per second and task,
// single calls decide, and a customer that was idle may have up to LeastDepth·tasks in
// one burst. After Grace, tasks that are cut off from the board use up to R/tasks each on
// top of the limit. Tasks that can write to the board trust each other.
//
// # Source
//
// Site Reliability Engineering, chapter 21, "Per-Customer Limits": usage is summed up
// over all tasks, and limits are pushed to each. Levels instead of shares, debts in the
// levels and the order of classes over tasks are additions.
package fleet
