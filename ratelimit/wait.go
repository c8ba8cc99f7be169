package ratelimit

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/rejection"
	"github.com/seed90641741/spillway/internal/unsent"
)

// Wait takes a token, and blocks until the call may go ahead. It is [Limiter.Reserve] for
// callers without a clock of their own. At most Config.QueueDepth callers wait, in the order
// of their arrival; with the default depth of 0 Wait does not block, but takes a token or
// rejects, as Admit does.
//
// Wait returns nil if the caller may go ahead. It returns a *[spillway.RejectedError] at
// once if the queue is full, or if the deadline of ctx is before the token is due; then no
// token is taken. If ctx ends during the wait the token is given back, and the error wraps
// that of ctx. With all of these the call was not sent: package fault says so, and no
// strategy of package retry retries it.
func (l *Limiter) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return unsent.Error("ratelimit", "a token", err)
	}
	now := time.Now()
	r, err := l.reserveBy(ctx, now)
	if err != nil || r.Wait <= 0 {
		return err
	}
	timer := time.NewTimer(r.Wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		l.granted(&r)
		return nil
	case <-ctx.Done():
		r.End(time.Now())
		return unsent.Error("ratelimit", "a token", ctx.Err())
	}
}

// granted ends a Reservation whose time has come, as the timer has shown. Goroutines may have
// read the clock in another order than they came here, so the clock might say otherwise.
func (l *Limiter) granted(r *Reservation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endAt(r.start+r.Wait, r.start, r.Wait)
}

// reserveBy is Reserve for a token that is due before the deadline of ctx.
func (l *Limiter) reserveBy(ctx context.Context, now time.Time) (Reservation, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return l.Reserve(now)
	}
	return l.reserve(now, deadline.Sub(now))
}

// tooLate are the rejections of calls whose token is due after their deadline, by the time to
// the deadline in percent of the wait for the token.
var tooLate = rejection.NewTable(func(level float64) *spillway.RejectedError {
	return &spillway.RejectedError{
		Policy: "ratelimit",
		Reason: spillway.ReasonDeadline,
		Level:  level,
		Limit:  100,
		Unit:   "% of the wait for a token",
		Advice: "the next free token is due after the deadline of the call; send less, or allow more time",
	}
})
