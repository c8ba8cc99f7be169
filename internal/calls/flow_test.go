package calls_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/calls"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

var errBackend = errors.New("backend: broken")

// unsentError is the failure of an attempt that was never sent.
type unsentError struct{ error }

func (unsentError) Unsent() bool { return true }

// lastError is the answer of a backend that says so.
type lastError struct{ error }

func (lastError) DontRetry() bool { return true }

// TestFinal: after which ends a call must not be repeated by the caller's own caller.
func TestFinal(t *testing.T) {
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
		step := calls.Step{Action: calls.Done, Err: row.answer}
		if got := step.Final(); got != row.want {
			t.Errorf("%s: final %v, want %v", name, got, row.want)
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
	p := calls.Policies{Throttle: routes, InFlightMode: spillway.ModeOff, Retry: strategy}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		failure fault.Failure
		want    calls.Action
	}{
		{fault.Failure{}, calls.Done},
		{fault.Failure{Safety: fault.RetrySafe, Overload: true}, calls.Wait},
	} {
		var f calls.Flow
		if s := f.Begin(&p, &spillway.Call{}, nil); s.Action != calls.Wait || s.Wait != 0 {
			t.Fatalf("Begin: %+v", s)
		}
		if s := f.Resume(now, nil); s.Action != calls.Run {
			t.Fatalf("Resume: %+v", s)
		}
		s := f.Fail(now, calls.Failure{Err: errBackend, Failure: row.failure})
		if s.Action != row.want {
			t.Errorf("Fail with %+v: %+v, want action %d", row.failure, s, row.want)
		}
	}
}
