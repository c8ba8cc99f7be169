package egress_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/retry"
)

// TestAccepted: an attempt counts as accepted once, from the time when the backend has accepted
// it, in whatever way it ends. Without that, it counts when it ends.
func TestAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		tell          bool
		ends          error
		during, after float64 // accepts
		requests      float64
		mode          spillway.Mode
	}{
		"ends well":         {tell: true, during: 1, after: 1, requests: 1},
		"is canceled":       {tell: true, ends: context.Canceled, during: 1, after: 1, requests: 1},
		"breaks":            {tell: true, ends: overloaded{}, during: 1, after: 1, requests: 1},
		"times out":         {tell: true, ends: context.DeadlineExceeded, during: 1, after: 1, requests: 1},
		"only ends well":    {after: 1, requests: 1},
		"only is canceled":  {ends: context.Canceled},
		"only is rejected":  {ends: overloaded{}, requests: 1},
		"while it observes": {tell: true, during: 1, after: 1, requests: 1, mode: spillway.ModeObserve},
		"with no throttle":  {tell: true, mode: spillway.ModeOff},
	} {
		t.Run(name, func(t *testing.T) {
			once, err := retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 1})
			if err != nil {
				t.Fatal(err)
			}
			client := must(t, egress.Config{ThrottleMode: c.mode, Retry: once})
			counts := func() (accepts, requests float64) {
				s := client.Stats(time.Now()).Throttle[spillway.Critical.Index()]
				return s.Accepts, s.Requests
			}
			_ = client.Do(t.Context(), spillway.Call{}, func(_ context.Context, a *egress.Attempt) error {
				for range 2 {
					if c.tell {
						a.Accepted()
					}
				}
				if got, _ := counts(); got != c.during {
					t.Errorf("%v accepts while it lasts, want %v", got, c.during)
				}
				return c.ends
			})
			if accepts, requests := counts(); accepts != c.after || requests != c.requests {
				t.Errorf("%v accepts of %v requests in the end, want %v of %v", accepts, requests, c.after, c.requests)
			}
		})
	}
}
