package shed

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/pace"
)

// The Setting of a [spillway.RejectedError] with the reason [spillway.ReasonMaxWait]: what limited
// the wait of the request.
const (
	// ByMaxWait: [Config.MaxWait]. The request has no deadline, or waited for a processor.
	ByMaxWait = "max_wait"
	// ByBurst: 1 s, which is more than MaxWait. No overload of the processors stood, or none of
	// them was free to let a request in.
	ByBurst = "burst"
	// ByDeadline: the deadline of the request leaves no more time to wait.
	ByDeadline = "deadline"
	// ByLatency: eight usual latencies, and at least 1 s, behind a limit whose queue was found.
	ByLatency = "latency"
	// ByQueue: the time in which the waiting queue of its class is served.
	ByQueue = "queue"
)

// atMost shortens the wait of a request.
func (a *arrival) atMost(wait time.Duration, by cause) {
	if wait < a.patience {
		a.patience, a.by = wait, by
	}
}

// patience returns the maximum wait before a limit, and what limits it. Without a deadline the wait
// is most. With a deadline it is three quarters of the time to the deadline that remains after
// twice the recent latency, and at least a quarter of the whole time. If a queue was found behind
// the limit, the time to the deadline is divided by the number of calls of a task: later calls of
// the task have to wait, too, and the first call is of no use without them.
func patience(now time.Time, call *spillway.Call, p *pace.Pace, most time.Duration, calls float64) (time.Duration, cause) {
	if call.Deadline.IsZero() {
		return most, byMaxWait
	}
	left := call.Deadline.Sub(now)
	if p.Found {
		left = time.Duration(float64(left) / calls)
	}
	spare := left - 2*time.Duration(p.Latency*float64(time.Second))
	wait := max(spare/4*3, left/4)
	if p.Found && p.Parked < wait {
		return p.Parked, byLatency
	}
	return wait, byDeadline
}
