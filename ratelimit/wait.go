package ratelimit

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/rejection"
	"github.com/seed90641741/spillway/internal/unsent"
)

// Wait takes a token, and blocks until the call may proceed. It is [Limiter.Reserve] for callers
// that do not handle time themselves. At most Config.QueueDepth callers wait, in the order of their
// arrival. With the default depth of 0 Wait does not block: it takes a token or rejects, as Admit
// does.
//
// Wait returns nil if the caller may proceed. It returns a *[spillway.RejectedError] at once if the
// queue is full, or if the token is not due before the deadline of ctx; then it has taken no token.
// If ctx ends during the wait, Wait returns the token, and an error that wraps that of ctx. All of
// these errors mean that the call was not sent: package fault recognizes them, and no strategy of
// package retry retries the call.
func (l *Limiter) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return unsent.Error("ratelimit", "a token", err)
	}
	deadline, _ := ctx.Deadline() // zero if there is none
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

// granted ends a Reservation whose timer has fired. It uses the time of the timer, because
// goroutines may arrive here in another order than they have read the clock.
func (l *Limiter) granted(r *Reservation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endAt(r.start+r.Wait, r.start, r.Wait)
}

// tooLate has the rejections of calls whose token is not due before their deadline. They are
// indexed by the time to the deadline, as a percentage of the wait for the token.
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
