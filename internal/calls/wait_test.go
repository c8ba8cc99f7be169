package calls_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/calls"
	"github.com/seed90641741/spillway/internal/clock"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// account is a budget with so many tokens. It counts what is paid and paid back.
type account struct{ tokens, paid, returned float64 }

func (a *account) Withdraw(_ time.Time, _ string, tokens float64) (left, capacity float64, ok bool) {
	if a.tokens < tokens {
		return a.tokens, 10, false
	}
	a.tokens -= tokens
	a.paid += tokens
	return a.tokens, 10, true
}

func (a *account) Deposit(_ string, tokens float64) {
	if tokens == 1 { // not what a first attempt earns
		a.returned++
	}
}

// policiesWith returns policies whose retries wait for a second and are paid by b.
func policiesWith(t *testing.T, b retry.Budget) *calls.Policies {
	t.Helper()
	return &calls.Policies{
		Throttle: must(throttle.NewRoutes(throttle.Config{})), ThrottleMode: spillway.ModeOff, InFlightMode: spillway.ModeOff,
		Retry: must(retry.NewBudgeted(retry.BudgetedConfig{
			Budget: b, Backoff: retry.Backoff{Base: time.Second}, Rand: func() float64 { return 1 },
		})),
	}
}

// failed returns a call whose first attempt has failed, and the Step that follows.
func failed(t *testing.T, p *calls.Policies, call spillway.Call, before func(time.Duration)) (*calls.Flow, calls.Step) {
	t.Helper()
	f := new(calls.Flow)
	call.Idempotent = true
	f.Begin(p, &call, nil)
	if s := f.Resume(time.Now(), nil); s.Action != calls.Run {
		t.Fatalf("%+v, want the first attempt to run", s)
	}
	f.BeforeRetry = before
	return f, f.Fail(time.Now(), calls.Failure{Err: errBackend, Failure: fault.Failure{Overload: true, Safety: fault.RetrySafe}})
}

// TestWait: a wait before a retry ends with the retry, with the context, or at once if the deadline comes first; the retry that is not
// sent is paid back. The wait of a long poll without budget ends with the error of the call.
func TestWait(t *testing.T) {
	for name, row := range map[string]struct {
		tokens   float64
		call     spillway.Call
		deadline time.Duration // of the call; 0: none
		cancel   time.Duration // of the context; 0: never
		run      bool
		err      error
		waited   time.Duration
		returned float64
	}{
		"until the retry":             {tokens: 1, run: true, waited: time.Second},
		"until the context ends":      {tokens: 1, cancel: 300 * time.Millisecond, err: context.Canceled, waited: 300 * time.Millisecond, returned: 1},
		"long poll":                   {call: spillway.Call{LongPoll: true}, err: errBackend, waited: time.Second},
		"long poll, context ends":     {call: spillway.Call{LongPoll: true}, cancel: 300 * time.Millisecond, err: context.Canceled, waited: 300 * time.Millisecond},
		"long poll, deadline sooner":  {call: spillway.Call{LongPoll: true}, deadline: 1100 * time.Millisecond, err: errBackend, waited: 0},
		"no budget and no long poll":  {err: errBackend},
		"the deadline comes sooner":   {tokens: 1, deadline: 1100 * time.Millisecond, err: errBackend, returned: 1},
		"the deadline does not yet":   {tokens: 1, deadline: 1300 * time.Millisecond, run: true, waited: time.Second},
		"canceled before it can wait": {tokens: 1, cancel: 1, err: context.Canceled, waited: 1, returned: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &account{tokens: row.tokens}
				call, start := row.call, time.Now()
				f, step := failed(t, policiesWith(t, b), call, nil)
				if row.deadline > 0 { // the strategy did not know it
					f.Call.Deadline = start.Add(row.deadline - 200*time.Millisecond)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.cancel > 0 {
					time.AfterFunc(row.cancel, cancel)
				}
				if step.Action == calls.Wait {
					step = f.Wait(ctx, new(clock.Clock), step.Wait)
				}
				if run := step.Action == calls.Run; run != row.run || !errors.Is(step.Err, row.err) || row.err != nil && step.Err == nil {
					t.Errorf("%+v, want run %v and error %v", step, row.run, row.err)
				}
				if waited := time.Since(start); waited != row.waited || b.returned != row.returned {
					t.Errorf("waited %v and %v tokens were paid back, want %v and %v", waited, b.returned, row.waited, row.returned)
				}
			})
		})
	}
}

// TestBeforeRetry: an attempt learns that another one follows, before the wait; a panic there pays the retry back, once.
func TestBeforeRetry(t *testing.T) {
	b := &account{tokens: 1}
	var told time.Duration
	if _, step := failed(t, policiesWith(t, b), spillway.Call{}, func(wait time.Duration) { told = wait }); told != time.Second || step.Wait != told {
		t.Errorf("told %v, wait %v, want a second", told, step.Wait)
	}
	told = 0
	if _, step := failed(t, policiesWith(t, b), spillway.Call{}, func(wait time.Duration) { told = wait }); told != 0 || step.Action != calls.Done {
		t.Errorf("told %v before %+v, want nothing, as no attempt follows", told, step)
	}
	b = &account{tokens: 1}
	f := new(calls.Flow)
	defer func() {
		if recover() == nil || b.paid != 1 || b.returned != 1 {
			t.Errorf("%+v, want the token of the retry to be paid back once", *b)
		}
	}()
	defer f.Abort() // as shells do
	f.Begin(policiesWith(t, b), &spillway.Call{Idempotent: true}, nil)
	f.Resume(time.Now(), nil)
	f.BeforeRetry = func(time.Duration) { panic("before the retry") }
	f.Fail(time.Now(), calls.Failure{Err: errBackend, Failure: fault.Failure{Overload: true, Safety: fault.RetrySafe}})
}
