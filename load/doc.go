// Package load tells how busy a server process is, by several measures that are
// each read where they are needed and never by a goroutine: under the overload
// that they are to reveal, a ticker runs late or not at all.
//
// # The measures
//
//	executor   goroutines that run or are ready to, for each processor: the
//	           executor load average of the source. Above 1 some have to wait.
//	CPU        processor time that this process used, as a share of GOMAXPROCS
//	quota      processor time that the cgroup used, as a share of its quota
//	throttled  share of the periods in which the cgroup ran out of its quota
//	memory     memory held by the Go runtime, as a share of the lesser of
//	           GOMEMLIMIT and the cgroup's limit
//	scheduling the time that goroutines waited for a processor, 99th percentile
//	queue      the longest that a request waited to be admitted, which is fed in
//	           with [Meter.Waited]
//
// and whatever else the user gives as a [Signal]. The executor is the one to
// decide by, in its instantaneous form ([Meter.Executor], read again after 20 µs
// at the earliest). For a report it is averaged exponentially over
// [Config.Smoothing]: the source smooths with exponential decay, so that a
// request that fans out widely does not look like overload, and what is smooth
// enough for that is too slow to decide by (package shed). All other measures
// are sampled on the path of a request when the last sample is [Config.Interval]
// old, which takes some microseconds, or tens of them where cgroup files are read.
//
// # Combination
//
// Each measure may have a target, in its own unit: at the target the process is
// as busy as it should be. [Meter.Utilization] is the greatest of value/target
// over all measures that have one, so that 1 means that some target is reached,
// as the source has it for combined targets. By default only memory has one: it
// is the measure that package shed cannot see, and one that kills. CPU time is no
// measure of overload by itself: a server that does its best uses all it has.
//
// A source that is missing (no cgroup, no limit, another system than Linux) is
// left out of everything and named in [Meter.Missing].
//
// Source: Site Reliability Engineering, chapter 21, "Utilization Signals".
package load
