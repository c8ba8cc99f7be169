package retry_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/retry"
)

// steady is a custom strategy: it waits the same time before every
// attempt, the first one included, and never gives up. It remembers how its
// calls ended.
type steady struct {
	issuer retry.TokenSource
	delay  time.Duration
	ends   []string
}

func (s *steady) Begin(call spillway.Call) retry.Token { return s.issuer.Begin(call, s.delay) }

func (s *steady) Refresh(_ time.Time, t retry.Token, _ fault.Failure) (retry.Token, error) {
	st, err := s.issuer.Claim(t)
	if err != nil {
		return retry.Token{}, err
	}
	return st.Next(s.delay), nil
}

func (s *steady) Succeed(t retry.Token) error { return s.end(t, "success") }

func (s *steady) Release(t retry.Token, f fault.Failure) error {
	if f.Unsent {
		return s.end(t, "unsent")
	}
	return s.end(t, "failure")
}

func (s *steady) end(t retry.Token, how string) error {
	st, err := s.issuer.Claim(t)
	if err == nil {
		s.ends = append(s.ends, how)
		st.End()
	}
	return err
}

// stopped returns err as the Error that it must be.
func stopped(t *testing.T, err error) *retry.Error {
	t.Helper()
	e, ok := errors.AsType[*retry.Error](err)
	if !ok {
		t.Fatalf("%v is no *retry.Error", err)
	}
	return e
}

func TestDoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steady{delay: time.Second}
		start := time.Now()
		var at []time.Duration
		err := retry.Do(t.Context(), s, spillway.Call{}, func(_ context.Context, a *retry.Attempt) error {
			if a.Number != len(at) {
				t.Errorf("attempt %d says that it is number %d", len(at), a.Number)
			}
			at = append(at, time.Since(start))
			if len(at) < 3 {
				return errTransient
			}
			return nil
		})
		if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}; err != nil || !slices.Equal(at, want) {
			t.Errorf("attempts at %v, %v; want %v", at, err, want)
		}
		if !slices.Equal(s.ends, []string{"success"}) {
			t.Errorf("the call ended with %q", s.ends)
		}
	})
}

// TestDoLeaves: whenever there is no further attempt, the token goes back as
// one that was not sent, and at once.
func TestDoLeaves(t *testing.T) {
	for _, test := range []struct {
		name               string
		cancel             time.Duration // of ctx
		timeout, deadline  time.Duration // of ctx, of the call
		delay              time.Duration
		attempts           int
		reason             retry.Reason
		after              time.Duration
		canceled, overtime bool
	}{
		{name: "canceled before the first attempt", cancel: time.Second, delay: time.Minute, reason: retry.ReasonCanceled, after: time.Second, canceled: true},
		{name: "deadline before the first attempt", timeout: time.Second, delay: time.Second, reason: retry.ReasonDeadline},
		{name: "canceled while waiting", cancel: 90 * time.Second, delay: time.Minute, attempts: 1, reason: retry.ReasonCanceled, after: 90 * time.Second, canceled: true},
		{name: "deadline of the context", timeout: 90 * time.Second, delay: time.Minute, attempts: 1, reason: retry.ReasonDeadline, after: time.Minute},
		{name: "deadline of the call", timeout: time.Hour, deadline: 90 * time.Second, delay: time.Minute, attempts: 1, reason: retry.ReasonDeadline, after: time.Minute},
		{name: "later deadline of the call", timeout: 90 * time.Second, deadline: time.Hour, delay: time.Minute, attempts: 1, reason: retry.ReasonDeadline, after: time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.timeout > 0 {
					ctx, cancel = context.WithTimeout(ctx, test.timeout)
					defer cancel()
				}
				if test.cancel > 0 {
					time.AfterFunc(test.cancel, cancel)
				}
				var call spillway.Call
				if test.deadline > 0 {
					call.Deadline = time.Now().Add(test.deadline)
				}
				s, start, n := &steady{delay: test.delay}, time.Now(), 0
				err := retry.Do(ctx, s, call, func(context.Context, *retry.Attempt) error { n++; return errTransient })
				if after := time.Since(start); n != test.attempts || after != test.after {
					t.Errorf("%d attempts, returned after %v; want %d, %v", n, after, test.attempts, test.after)
				}
				if !slices.Equal(s.ends, []string{"unsent"}) {
					t.Errorf("the token went back with %q", s.ends)
				}
				if test.attempts > 0 {
					if e := stopped(t, err); e.Reason != test.reason || e.Attempts != n || !errors.Is(err, errTransient) {
						t.Errorf("%+v", e)
					}
				}
				if err == nil || errors.Is(err, context.Canceled) != test.canceled {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// TestDoCanceledAtOnce: no attempt is made for a caller who left during the
// one before, even without a wait in between.
func TestDoCanceledAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := bucket(10, 10)
	s := must(retry.NewBudgeted(retry.BudgetedConfig{Budget: b, Ratio: -1}))
	n := 0
	err := retry.Do(ctx, s, spillway.Call{}, func(context.Context, *retry.Attempt) error { n++; cancel(); return errTransient })
	if n != 1 || !errors.Is(err, errTransient) || !errors.Is(err, context.Canceled) {
		t.Errorf("%d attempts, %v", n, err)
	}
	wantTokens(t, b, 10)
	if got := s.Stats(time.Time{}); got.RetriesTotal != 1 || got.UnsentTotal != 1 {
		t.Errorf("%+v", got)
	}
}

// TestDoEndsMidAttempt: an attempt that ends because its caller left does not
// hide what the backend said to the one before.
func TestDoEndsMidAttempt(t *testing.T) {
	for _, test := range []struct {
		timeout time.Duration
		want    error
		reason  retry.Reason
	}{
		{time.Second, context.DeadlineExceeded, retry.ReasonDeadline},
		{time.Hour, context.Canceled, retry.ReasonCanceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
			defer cancel()
			time.AfterFunc(time.Minute, cancel)
			s := must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}}))
			err := retry.Do(ctx, s, spillway.Call{}, func(ctx context.Context, a *retry.Attempt) error {
				if a.Number == 0 {
					return errOverload
				}
				<-ctx.Done()
				return ctx.Err()
			})
			if e := stopped(t, err); e.Reason != test.reason || e.Attempts != 2 || !errors.Is(err, test.want) || !errors.Is(err, errOverload) {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestDoCanceledByTransport is the same for a transport with its own word for it.
func TestDoCanceledByTransport(t *testing.T) {
	canceled := faultError{Canceled: true}
	s := must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}}))
	err := retry.Do(t.Context(), s, spillway.Call{}, script(errOverload, canceled))
	if e := stopped(t, err); e.Reason != retry.ReasonCanceled || e.Err != errOverload || !errors.Is(err, canceled) {
		t.Errorf("%+v", e)
	}
}

// TestDoAsItIs: the error of a first attempt that no strategy retries is not
// wrapped; that of a later one is.
func TestDoAsItIs(t *testing.T) {
	rejected := &spillway.RejectedError{Policy: "throttle"}
	for _, err := range []error{errFinal, errMaybe, context.Canceled, rejected, faultError{Overload: true, Safety: fault.RetrySafe, DontRetry: true}} {
		s := must(retry.NewAWSStandard(retry.AWSStandardConfig{}))
		if got := retry.Do(t.Context(), s, spillway.Call{}, script(err)); got != err {
			t.Errorf("first attempt: %v, want %v itself", got, err)
		}
		b := must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}}))
		got := retry.Do(t.Context(), b, spillway.Call{}, script(errOverload, err))
		e := stopped(t, got)
		if !errors.Is(got, err) {
			t.Errorf("second attempt: %v does not wrap %v", got, err)
		}
		if e.Reason == retry.ReasonUnsent && e.Attempts != 1 || e.Reason != retry.ReasonUnsent && e.Attempts != 2 {
			t.Errorf("second attempt: %+v", e)
		}
	}
}

// TestDoLocalRejection: a rejection by another policy is not retried and not
// charged, and the backend's last answer stays in sight.
func TestDoLocalRejection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bucket(500, 500)
		s := must(retry.NewAWSStandard(retry.AWSStandardConfig{Budget: b, Rand: noJitter}))
		rejected := &spillway.RejectedError{Policy: "inflight"}
		n := 0
		err := retry.Do(t.Context(), s, spillway.Call{}, func(_ context.Context, a *retry.Attempt) error {
			n++
			if a.Number == 0 {
				return errTransient
			}
			return rejected
		})
		e := stopped(t, err)
		if n != 2 || e.Attempts != 1 || e.Reason != retry.ReasonUnsent || e.Err != errTransient || !errors.Is(err, spillway.ErrRejected) {
			t.Errorf("after %d tries: %+v", n, e)
		}
		wantTokens(t, b, 500)
	})
}

func TestDoLongPoll(t *testing.T) {
	for _, test := range []struct {
		name     string
		longPoll bool
		cancel   time.Duration
		after    time.Duration
		reason   retry.Reason
	}{
		{"waits, then returns the error", true, 0, 50 * time.Millisecond, retry.ReasonBudget},
		{"an ordinary call does not wait", false, 0, 0, retry.ReasonBudget},
		{"canceled meanwhile", true, 20 * time.Millisecond, 20 * time.Millisecond, retry.ReasonCanceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.cancel > 0 {
					time.AfterFunc(test.cancel, cancel)
				}
				s := must(retry.NewAWSStandard(retry.AWSStandardConfig{Budget: bucket(500, 0), Rand: noJitter}))
				start := time.Now()
				err := retry.Do(ctx, s, spillway.Call{LongPoll: test.longPoll}, script(errTransient))
				if e := stopped(t, err); e.Reason != test.reason || e.Attempts != 1 || !errors.Is(err, errTransient) {
					t.Errorf("%+v", e)
				}
				if after := time.Since(start); after != test.after {
					t.Errorf("returned after %v, want %v", after, test.after)
				}
			})
		})
	}
}

// holding is a strategy that never retries and holds errors back.
type holding struct {
	steady

	hold time.Duration
}

func (s *holding) Refresh(_ time.Time, t retry.Token, _ fault.Failure) (retry.Token, error) {
	s.end(t, "rejected")
	return retry.Token{}, &retry.NotRetriedError{Reason: retry.ReasonBudget, LongPollDelay: s.hold}
}

// TestDoHoldsNotTooLong: an error that would come after the deadline comes now.
func TestDoHoldsNotTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		call := spillway.Call{Deadline: start.Add(time.Second)}
		err := retry.Do(t.Context(), &holding{hold: time.Minute}, call, script(errTransient))
		if e := stopped(t, err); e.Reason != retry.ReasonBudget || !errors.Is(err, errTransient) || time.Since(start) != 0 {
			t.Errorf("%+v after %v", e, time.Since(start))
		}
	})
}

// TestDoPanic: a panic, or the end of the goroutine, gives the token back and
// goes on.
func TestDoPanic(t *testing.T) {
	for _, leave := range []func(){func() { panic("in f") }, runtime.Goexit} {
		s := &steady{}
		done := make(chan any)
		go func() {
			defer func() { done <- recover() }()
			retry.Do(t.Context(), s, spillway.Call{}, func(_ context.Context, a *retry.Attempt) error {
				if a.Number == 1 {
					leave()
				}
				return errTransient
			})
		}()
		if got := <-done; got != nil && got != "in f" {
			t.Errorf("recovered %v", got)
		}
		if !slices.Equal(s.ends, []string{"failure"}) {
			t.Errorf("the token went back with %q", s.ends)
		}
	}
}

// TestDoConcurrent has many goroutines call at once, out of two strategies that
// share a budget: what is left in it must add up.
func TestDoConcurrent(t *testing.T) {
	const workers, calls = 8, 400
	b := bucket(1e6, 0)
	c := retry.BudgetedConfig{Budget: b}
	strategies := []*retry.Budgeted{must(retry.NewBudgeted(c)), must(retry.NewBudgeted(c))}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range calls {
				retry.Do(t.Context(), strategies[w%2], spillway.Call{}, func(_ context.Context, a *retry.Attempt) error {
					if (i+a.Number)%3 == 0 {
						return errOverload
					}
					return nil
				})
			}
		})
	}
	wg.Wait()
	retries := strategies[0].Stats(time.Time{}).RetriesTotal + strategies[1].Stats(time.Time{}).RetriesTotal
	if got, want := b.Stats(time.Time{}).Tokens, .1*workers*calls-float64(retries); math.Abs(got-want) > 1e-6 || retries == 0 {
		t.Errorf("%v tokens left after %d retries, want %v", got, retries, want)
	}
}

func TestDoDeprioritizes(t *testing.T) {
	s := must(retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 4, Budget: retry.Unlimited{}}))
	servers := []string{"a", "b", "a", "c"}
	var seen []string
	retry.Do(t.Context(), s, spillway.Call{}, func(_ context.Context, a *retry.Attempt) error {
		seen = append(seen, strings.Join(a.Deprioritized(), ""))
		a.Use("overwritten")
		a.Use(servers[a.Number])
		return errOverload
	})
	if want := []string{"", "a", "ab", "ab"}; !slices.Equal(seen, want) {
		t.Errorf("deprioritised %q, want %q", seen, want)
	}
}

func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	ctx := t.Context()
	rejected := &spillway.RejectedError{Policy: "throttle"}
	for _, s := range strategies(t) {
		for name, f := range map[string]func(){
			"success": func() { retry.Do(ctx, s.Strategy, spillway.Call{Key: "users"}, served) },
			"rejected": func() {
				retry.Do(ctx, s.Strategy, spillway.Call{}, func(context.Context, *retry.Attempt) error { return rejected })
			},
			"final": func() {
				retry.Do(ctx, s.Strategy, spillway.Call{}, func(context.Context, *retry.Attempt) error { return errFinal })
			},
			"retry": func() {
				token, err := s.Refresh(t0, s.Begin(spillway.Call{}), overload)
				if err != nil {
					token = s.Begin(spillway.Call{})
				}
				s.Release(token, fault.Failure{Unsent: true})
			},
		} {
			if n := testing.AllocsPerRun(1000, f); n > 0 && !(name == "retry" && strings.HasPrefix(s.name, "Budgeted")) {
				t.Errorf("%s, %s: %v allocations", s.name, name, n)
			}
		}
	}
}
