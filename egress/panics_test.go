package egress_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// A Router and an Observer that panic cost no place in flight, and the strategy hears that the call has ended.
func TestCallbacksThatPanic(t *testing.T) {
	for name, row := range map[string]struct {
		config egress.Config
		by     egress.Router
	}{
		"route":    {egress.Config{}, routePanics{}},
		"observer": {egress.Config{Observer: spillway.ObserverFunc(func(spillway.Event) { panic("observer") })}, nil},
	} {
		calls := &openCalls{Strategy: mustStrategy(retry.BudgetedConfig{})}
		row.config.Retry = calls
		c := must(t, row.config)
		for _, result := range []error{nil, errors.New("failed"), context.DeadlineExceeded} {
			func() {
				defer func() { _ = recover() }()
				_ = c.DoRoute(t.Context(), spillway.Call{Key: "k"}, row.by, func(context.Context, *egress.Attempt) error { return result })
			}()
		}
		if n := c.Stats(time.Now()).InFlight.InFlight; n != 0 {
			t.Errorf("%s: %d in flight after all have ended", name, n)
		}
		if calls.open != 0 {
			t.Errorf("%s: %d calls have not ended for the strategy", name, calls.open)
		}
	}
}

// An Observer that panics about a rejection, when the throttle has admitted the attempt, leaves no attempt that the throttle waits
// for, and the strategy hears that the call has ended.
func TestObserverOfARejectionPanics(t *testing.T) {
	calls := &openCalls{Strategy: mustStrategy(retry.BudgetedConfig{})}
	c := must(t, egress.Config{Retry: calls, MaxInFlight: 1, Observer: spillway.ObserverFunc(func(e spillway.Event) {
		if e.Rejected {
			panic("observer")
		}
	})})
	_ = c.Do(t.Context(), spillway.Call{Key: "k"}, func(ctx context.Context, _ *egress.Attempt) error {
		defer func() {
			if got := recover(); got != "observer" {
				t.Errorf("recovered %v", got)
			}
		}()
		return c.Do(ctx, spillway.Call{Key: "k"}, func(context.Context, *egress.Attempt) error { return nil })
	})
	if s := c.Stats(time.Now()); s.InFlight.InFlight != 0 || calls.open != 0 {
		t.Errorf("%d in flight, %d calls have not ended for the strategy", s.InFlight.InFlight, calls.open)
	}
}

// openCalls counts the calls that have begun and not ended.
type openCalls struct {
	retry.Strategy

	open int
}

func (c *openCalls) Begin(call spillway.Call) retry.Token {
	c.open++
	return c.Strategy.Begin(call)
}

func (c *openCalls) Refresh(now time.Time, t retry.Token, f fault.Failure) (retry.Token, error) {
	next, err := c.Strategy.Refresh(now, t, f)
	if err != nil {
		c.open--
	}
	return next, err
}

func (c *openCalls) Succeed(t retry.Token) error {
	c.open--
	return c.Strategy.Succeed(t)
}

func (c *openCalls) Release(t retry.Token, f fault.Failure) error {
	c.open--
	return c.Strategy.Release(t, f)
}

type routePanics struct{}

func (routePanics) Route() string { panic("route") }
