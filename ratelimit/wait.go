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
// once if the queue is full, or if the token is not due before the deadline of ctx; then no
// token is taken. If ctx ends during the wait the token is given back, and the error wraps
// that of ctx. With all of these the call was not sent: package fault says so, and no
// strategy of package retry retries it.
func (l *Limiter) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return unsent.Error("ratelimit", "a token", err)
	}
	deadline, _ := ctx.Deadline() // or zero
	r, err := l.ReserveBy(time.Now(), deadline)
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

// tooLate are the rejections of calls whose token is not due before their deadline, by the time
// to the deadline in percent of the wait for the token.
var tooLate = rejection.NewTable(func(level float64) *spillway.RejectedError {
	return &spillway.RejectedError{
		Policy: "ratelimit",
		Reason: spillway.ReasonDeadline,
		Level:  level,
		Limit:  100,
		Unit:   "% of the wait for a token",
		Advice: "the deadline comes before a token does; send less, allow more time, or raise Rate if there is room",
	}
})
