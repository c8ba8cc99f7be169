package egress_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// TestEventsHaveTimeAndContext: with an Observer the end of an attempt is read from the
// clock, and each event has the context of its call.
func TestEventsHaveTimeAndContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		c := must(t, egress.Config{Observer: &seen, MaxRequests: 1})
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

// unsentError is the failure of an attempt that was never sent.
type unsentError struct{ error }

func (unsentError) Unsent() bool { return true }

// lastError is the answer of a backend that says so.
type lastError struct{ error }

func (lastError) DontRetry() bool { return true }

// TestFinalIsMarked: which ends of a call the context of the request above remembers.
func TestFinalIsMarked(t *testing.T) {
	full := &spillway.RejectedError{Policy: "inflight", Reason: spillway.ReasonMaxInFlight}
	unsent := func(attempts int, reason retry.Reason, why error) error {
		return &retry.Error{Attempts: attempts, Reason: reason, Why: why, Err: unsentError{errBackend}}
	}
	for name, row := range map[string]struct {
		answer error
		want   bool
	}{
		"served":                     {nil, false},
		"broken":                     {errBackend, false},
		"rejected":                   {full, true},
		"don't retry":                {lastError{errBackend}, true},
		"canceled":                   {context.Canceled, false},
		"unsent at once":             {unsent(1, retry.ReasonUnsent, errBackend), false},
		"unsent at the second":       {unsent(2, retry.ReasonUnsent, errBackend), true},
		"unsent for another reason":  {unsent(1, retry.ReasonDontRetry, errBackend), true},
		"unsent as it was rejected":  {unsent(1, retry.ReasonUnsent, full), true},
		"unsent without a strategy":  {unsentError{errBackend}, true},
		"wrapped unsent at once":     {fmt.Errorf("call: %w", unsent(1, retry.ReasonUnsent, errBackend)), false},
		"wrapped unsent as rejected": {fmt.Errorf("call: %w", unsent(1, retry.ReasonUnsent, full)), true},
	} {
		step := egress.Step{Action: egress.ActionDone, Err: row.answer}
		if got := step.Final(); got != row.want {
			t.Errorf("%s: final %v, want %v", name, got, row.want)
		}
	}
	for answer, want := range map[error]bool{nil: false, errBackend: false, full: true} {
		mark := new(final.Mark)
		ctx := context.WithValue(t.Context(), final.Key{}, mark)
		_ = must(t, egress.Config{}).Do(ctx, spillway.Call{}, func(context.Context, *egress.Attempt) error { return answer })
		if mark.IsSet() != want {
			t.Errorf("a call that ends with %v: mark %v, want %v", answer, mark.IsSet(), want)
		}
	}
}

// TestFlowEndsAtOnce: where there is neither a retry nor a wait, Fail ends the call.
func TestFlowEndsAtOnce(t *testing.T) {
	routes, err := throttle.NewRoutes(throttle.Config{})
	if err != nil {
		t.Fatal(err)
	}
	strategy, err := retry.NewBudgeted(retry.BudgetedConfig{})
	if err != nil {
		t.Fatal(err)
	}
	p := egress.Policies{Throttle: routes, InflightMode: spillway.ModeOff, Retry: strategy}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		failure fault.Failure
		want    egress.Action
	}{
		{fault.Failure{}, egress.ActionDone},
		{fault.Failure{Safety: fault.RetrySafe, Overload: true}, egress.ActionWait},
	} {
		var f egress.Flow
		if s := f.Begin(&p, &spillway.Call{}, nil); s.Action != egress.ActionWait || s.Wait != 0 {
			t.Fatalf("Begin: %+v", s)
		}
		if s := f.Resume(now, nil); s.Action != egress.ActionRun {
			t.Fatalf("Resume: %+v", s)
		}
		s := f.Fail(now, egress.Failure{Err: errBackend, Failure: row.failure})
		if s.Action != row.want {
			t.Errorf("Fail with %+v: %+v, want action %d", row.failure, s, row.want)
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
	if err := pool.Update(egress.Config{Retry: own, MaxRequests: 5}); err != nil {
		t.Fatal(err)
	}
	do("a", "b", "c", "d")
	if own.began != 4 {
		t.Errorf("the strategy began %d of 4 calls", own.began)
	}
	for key, s := range pool.Stats(time.Now()) {
		if s.Inflight.MaxRequests != 5 || s.InflightByKey != nil {
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
