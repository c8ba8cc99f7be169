// Package delay waits between the attempts of a call.
package delay

import (
	"context"
	"errors"
	"time"
)

// ErrTooLate says that the wait would end after the deadline.
var ErrTooLate = errors.New("the deadline comes before the end of the wait")

// Sleep waits for d from the time now on, or returns why it did not: the error of ctx, or [ErrTooLate] if deadline
// is not zero and comes first. If now is zero, Sleep reads the clock.
func Sleep(ctx context.Context, now time.Time, d time.Duration, deadline time.Time) error {
	if d <= 0 {
		return ctx.Err()
	}
	if now.IsZero() {
		now = time.Now()
	}
	if !deadline.IsZero() && !now.Add(d).Before(deadline) {
		return ErrTooLate
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
