package spillmongo

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/retry"
)

// Stats says what a [Retrier] has done since the start, and how it stands.
type Stats struct {
	OverloadsTotal       uint64                // attempts that met an overload, connections that could not be had included
	RetriesTotal         uint64                // attempts after the first, to open a connection or at a command
	OverloadRetriesTotal uint64                // those of them that followed an overload
	RetargetedTotal      uint64                // those of the latter that went to another server
	RecoveredTotal       uint64                // commands that succeeded on a retry
	Backoff              time.Duration         // waited before retries, in sum
	NotRetriedTotal      [retry.Reasons]uint64 // commands that failed, by the reason why they were not retried (again)
	Budget               budget.Stats          // of the client's bucket; zero without one
}

// counters are what is counted.
type counters struct {
	overloads, retries, overloaded, retargeted, recovered atomic.Uint64

	backoff    atomic.Int64
	rejections [retry.Reasons]atomic.Uint64
}

func (c *counters) retry(overload bool) {
	c.retries.Add(1)
	if overload {
		c.overloaded.Add(1)
	}
}

func (c *counters) reject(why error) {
	reason := retry.ReasonOther
	if rejected, ok := errors.AsType[*retry.NotRetriedError](why); ok {
		reason = rejected.Reason
	}
	c.rejections[reason].Add(1)
}

// Stats returns what r has done so far.
func (r *Retrier) Stats(now time.Time) Stats {
	s := Stats{
		OverloadsTotal: r.count.overloads.Load(), RetriesTotal: r.count.retries.Load(), OverloadRetriesTotal: r.count.overloaded.Load(),
		RetargetedTotal: r.count.retargeted.Load(), RecoveredTotal: r.count.recovered.Load(),
		Backoff: time.Duration(r.count.backoff.Load()),
	}
	for i := range s.NotRetriedTotal {
		s.NotRetriedTotal[i] = r.count.rejections[i].Load()
	}
	if r.bucket != nil {
		s.Budget = r.bucket.Stats(now)
	}
	return s
}

// clock returns the time if it is needed when an attempt begins.
func (r *Retrier) clock() (now time.Time) {
	if r.timed {
		now = time.Now()
	}
	return now
}

// observe reports a command that has ended.
func (r *Retrier) observe(cmd string, start time.Time, retries int, v verdict) {
	if r.observer == nil {
		return
	}
	r.observer.Observe(spillway.Event{
		Time: start, Latency: time.Since(start), Policy: "retry", Err: v.err, Outcome: v.outcome(),
		Call: spillway.Call{Key: cmd, Kind: kinds[cmd], Attempt: int16(min(retries, math.MaxInt16))},
	})
}

// outcome returns what v means for the load of the server.
func (v *verdict) outcome() spillway.Outcome {
	switch {
	case v.served():
		return spillway.OutcomeServed
	case v.overloaded:
		return spillway.OutcomeOverloaded
	case errors.Is(v.err, context.Canceled):
		return spillway.OutcomeAbandoned
	case errors.Is(v.err, context.DeadlineExceeded):
		return spillway.OutcomeTimedOut
	default:
		return spillway.OutcomeFailed
	}
}
