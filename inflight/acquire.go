package inflight

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/unsent"
)

// Acquire takes a place in flight, and blocks until one is free. After nil the caller must
// call [Limiter.Release] exactly once; after an error it must not.
//
// At most Config.QueueDepth callers wait. A place that is released goes to the caller of the
// highest criticality, which ctx carries ([spillway.WithCriticality]), and within a class to
// the caller that has waited longest. A full queue rejects the caller that came last of the
// lowest class. Lower classes may wait until their deadline while higher classes keep all
// places in use.
//
// The error is a *[spillway.RejectedError] if the queue is full, or if the limit is 0. If ctx
// ends before there is a place, the error wraps that of ctx. A call whose deadline has passed
// never gets a place. With all of these the call was not sent: package fault says so, and no
// strategy of package retry retries it.
//
// Callers of [Limiter.TryAcquire] and [Limiter.Admit] do not wait, and get no place while
// others wait. Acquire allocates only if it has to wait, and starts no goroutine.
func (l *Limiter) Acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return unsent.Error("inflight", placeInFlight, err)
	}
	if full(l.word.Load(), 0) {
		l.holds.sweep(sweepAtRejection)
	}
	w, err := l.enter(spillway.CriticalityFrom(ctx).Index())
	if w == nil {
		return err
	}
	select {
	case err = <-w.result:
		if err != nil {
			return err
		}
		if err = ended(ctx); err != nil { // both came at once
			l.Release()
		}
		return unsent.Error("inflight", placeInFlight, err)
	case <-ctx.Done():
		l.leave(w)
		return unsent.Error("inflight", placeInFlight, ctx.Err())
	}
}

// ended returns the error of ctx, also where the timer of its deadline has not fired yet.
func ended(ctx context.Context) error {
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// placeInFlight is what a caller of Acquire waits for.
const placeInFlight = "a place in flight"
