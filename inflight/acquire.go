package inflight

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/unsent"
)

// Acquire takes a slot, and blocks until one is free. If it returns nil, the caller must call
// [Limiter.Release] exactly once; after an error it must not.
//
// At most Config.QueueDepth callers wait. A released slot goes to the caller with the highest
// criticality, which its ctx carries ([spillway.WithCriticality]), and within a class to the caller
// that has waited longest. If the queue is full, the caller that came last in the lowest class is
// rejected. Lower classes may wait until their deadlines while higher classes use all slots.
//
// The error is a *[spillway.RejectedError] if the queue is full or the limit is 0. If ctx ends
// before a slot is free, the error wraps that of ctx. A call whose deadline has passed never gets a
// slot. All of these errors mean that the call was not sent: package fault recognizes them, and no
// strategy of package retry retries the call.
//
// [Limiter.TryAcquire] and [Limiter.Admit] do not wait, and get no slot while callers of Acquire
// wait. Acquire allocates only if it has to wait, and starts no goroutine.
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
		if err = ended(ctx); err != nil { // the slot and the end of ctx came at the same time
			l.Release()
		}
		return unsent.Error("inflight", placeInFlight, err)
	case <-ctx.Done():
		l.leave(w)
		return unsent.Error("inflight", placeInFlight, ctx.Err())
	}
}

// ended returns the error of ctx. It returns DeadlineExceeded also if the deadline has passed and
// its timer has not fired yet.
func ended(ctx context.Context) error {
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// placeInFlight is what Acquire waits for, in its errors.
const placeInFlight = "a place in flight"
