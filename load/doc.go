// Package load measures how busy a server process is. It has several measures. Each is read when it
// is needed, and never by a goroutine in the background: under overload, which the measures must
// reveal, a ticker runs late or not at all.
//
// # The measures
//
//	executor   goroutines that run or are ready to run, for each processor: the
//	           executor load average of the source. Above 1 some have to wait
//	CPU        processor time that this process used, as a share of GOMAXPROCS
//	quota      processor time that the cgroup used, as a share of its quota
//	throttled  share of the periods in which the cgroup ran out of its quota
//	memory     memory of the Go runtime, as a share of its limit: GOMEMLIMIT or the
//	           limit of a cgroup up to the root, whichever is lowest at the time of
//	           the sample. Against GOMEMLIMIT only memory in use counts, because
//	           the runtime collects garbage before it reaches that limit. Against
//	           a cgroup's limit all memory counts, because garbage can get the
//	           process killed
//	scheduling time that goroutines waited for a processor, 99th percentile
//	queue      longest time that a request waited to be admitted, as reported to
//	           [Meter.Waited]
//
// and each [Signal] that the user adds. Decide by the executor, in its instantaneous form
// ([Meter.Executor], read again after 20 µs at the earliest). For reports it is averaged
// exponentially over [Config.Smoothing]. The source smooths with exponential decay, so that a
// request that fans out widely does not look like overload; but a measure that is smooth enough for
// that is too slow to decide by (package shed). All other measures are sampled on the path of a
// request when the last sample is [Config.Interval] old. That takes some microseconds, or tens of
// them if cgroup files are read.
//
// # Combination
//
// A measure can have a target, in its own unit: at the target the process is as busy as it should
// be. value/target is the share of the measure. All shares together give the utilization of the
// process, in one of three ways, which can be combined:
//
//	maximum     the greatest share, which is the default: 1 means that some target
//	            is reached
//	individual  [Config.Thresholds] give a measure separate thresholds for each
//	            criticality, such as memory that rejects SHEDDABLE requests at 0.5
//	            of the limit and CRITICAL_PLUS ones at 0.9
//	function    [Config.Combine] computes the utilization from all readings, such
//	            as the mean of two
//
// By default only memory has a target, because package shed cannot see it, and because a process
// without memory is killed. At the lowest threshold the process should collect its garbage, as
// package ingress does: see [Meter.ShortOfMemory]. CPU time alone is no measure of overload: a
// server that does its best uses all it has. A target for the executor load average rejects by
// criticality as the source does, by the smoothed number of running and runnable goroutines for
// each processor.
//
// A source that is missing (no cgroup, no limit, another system than Linux) is left out, and named
// in [Meter.Missing].
//
// Source: Site Reliability Engineering, chapter 21, "Utilization Signals".
package load
