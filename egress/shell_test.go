package egress_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/retry"
)

// TestEventsHaveTimeAndContext: with an Observer the end of an attempt is read from the
// clock, and each event has the context of its call.
func TestEventsHaveTimeAndContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		c := must(t, egress.Config{Observer: &seen, MaxInFlight: 1})
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "value")
		err := c.Do(ctx, spillway.Call{}, func(context.Context, *egress.Attempt) error {
			time.Sleep(time.Second)
			return c.Do(ctx, spillway.Call{}, works) // rejected: the one place is taken
		})
		if !errors.Is(err, spillway.ErrRejected) {
			t.Error(err)
		}
		if len(seen.all) != 6 {
			t.Fatalf("%d events: %s", len(seen.all), seen.trace())
		}
		for i, e := range seen.all {
			if e.Context == nil || e.Context.Value(key{}) != "value" {
				t.Errorf("event %d of %s has the context %v", i, e.Policy, e.Context)
			}
			if outer := i >= 3; outer && e.Latency != time.Second || !outer && e.Latency != 0 {
				t.Errorf("event %d of %s has the latency %v", i, e.Policy, e.Latency)
			}
		}
		seen.all = nil
		if err := must(t, egress.Config{Observer: &seen}).Do(ctx, spillway.Call{}, func(context.Context, *egress.Attempt) error {
			time.Sleep(time.Minute)
			return nil
		}); err != nil || seen.all[0].Latency != time.Minute {
			t.Errorf("%v, and a call of a minute has the latency %v", err, seen.all[0].Latency)
		}
	})
}

// TestFinalIsMarked: the context of the request above remembers that a call must not be repeated.
func TestFinalIsMarked(t *testing.T) {
	full := &spillway.RejectedError{Policy: "inflight", Reason: spillway.ReasonMaxInFlight}
	for answer, want := range map[error]bool{nil: false, errBackend: false, full: true} {
		mark := new(final.Mark)
		ctx := context.WithValue(t.Context(), final.Key{}, mark)
		_ = must(t, egress.Config{}).Do(ctx, spillway.Call{}, func(context.Context, *egress.Attempt) error { return answer })
		if mark.IsSet() != want {
			t.Errorf("a call that ends with %v: mark %v, want %v", answer, mark.IsSet(), want)
		}
	}
}

// counting is a Strategy that counts its calls.
type counting struct {
	retry.Strategy

	began int
}

func (c *counting) Begin(call spillway.Call) retry.Token {
	c.began++
	return c.Strategy.Begin(call)
}

// TestUpdateOfAllClientsOfAPool: the present ones and later ones get the strategy.
func TestUpdateOfAllClientsOfAPool(t *testing.T) {
	pool, err := egress.NewPool(egress.Config{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	do := func(keys ...string) {
		for _, key := range keys {
			if err := pool.For(key).Do(t.Context(), spillway.Call{}, works); err != nil {
				t.Error(err)
			}
		}
	}
	do("a", "b", "c")
	standard, err := retry.NewBudgeted(retry.BudgetedConfig{})
	if err != nil {
		t.Fatal(err)
	}
	own := &counting{Strategy: standard}
	if err := pool.Update(egress.Config{Retry: own, MaxInFlight: 5}); err != nil {
		t.Fatal(err)
	}
	do("a", "b", "c", "d")
	if own.began != 4 {
		t.Errorf("the strategy began %d of 4 calls", own.began)
	}
	for key, s := range pool.Stats(time.Now()) {
		if s.InFlight.MaxInFlight != 5 || s.InFlightByKey != nil {
			t.Errorf("%s: %+v", key, s)
		}
	}
	if err := pool.Update(egress.Config{}); err != nil {
		t.Fatal(err)
	}
	do("a", "b", "c", "d", "e")
	if own.began != 4 {
		t.Errorf("the strategy began %d calls after it was replaced", own.began-4)
	}
}
