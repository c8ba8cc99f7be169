package egress_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/internal/claims"
)

// A timeout of the transport's own counts for the backend, no matter who set the deadline
// that was still to come.
func TestOwnTimeoutTeachesTheThrottle(t *testing.T) {
	for _, row := range []struct {
		left time.Duration // set by an untrusted client
		want float64       // requests that the throttle knows of
	}{{time.Minute, 1}, {time.Second, 0}} {
		synctest.Test(t, func(t *testing.T) {
			c := must(t, egress.Config{})
			deadline := time.Now().Add(row.left)
			ctx, cancel := context.WithDeadline(context.WithValue(t.Context(), claims.DeadlineKey{}, deadline), deadline)
			defer cancel()
			_ = c.Do(ctx, spillway.Call{}, func(context.Context, *egress.Attempt) error {
				time.Sleep(time.Second)
				return context.DeadlineExceeded // as of a timer of its own
			})
			if got := c.Stats(time.Now()).Throttle[spillway.Critical.Index()].Requests; got != row.want {
				t.Errorf("%v left: the throttle knows of %v requests, want %v", row.left, got, row.want)
			}
		})
	}
}
