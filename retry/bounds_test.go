package retry_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// The first and the last value of each range are allowed.
func TestConfigAtItsBounds(t *testing.T) {
	if _, err := retry.NewAWSStandard(retry.AWSStandardConfig{Prices: retry.Prices{Retry: 1e9, Overload: 1e9, Timeout: 1e9, Success: 1e9}}); err != nil {
		t.Error(err)
	}
	for _, p := range []float64{0.5, 0.999} {
		if _, err := retry.NewHedge(retry.HedgeConfig{Percentile: p}); err != nil {
			t.Error(err)
		}
	}
	for _, p := range []float64{0.4999, 0.9991} {
		if _, err := retry.NewHedge(retry.HedgeConfig{Percentile: p}); err == nil {
			t.Errorf("Percentile %v is valid", p)
		}
	}
	if got := retry.Reason(retry.Reasons).String(); got != "other" {
		t.Errorf("the reason after the last one is %q", got)
	}
}

// However often a call is retried, no wait exceeds the longest one of its strategy.
func TestLongestWaits(t *testing.T) {
	most := func() float64 { return 1 }
	for name, row := range map[string]struct {
		s    retry.Strategy
		f    fault.Failure
		want time.Duration
	}{
		"2.1":                {must(retry.NewAWSStandard(retry.AWSStandardConfig{MaxAttempts: 12, Budget: retry.Unlimited{}, Rand: most})), fault.Failure{Safety: fault.RetrySafe}, 20 * time.Second},
		"2.1, overload":      {must(retry.NewAWSStandard(retry.AWSStandardConfig{MaxAttempts: 12, Budget: retry.Unlimited{}, Rand: most})), fault.Failure{Safety: fault.RetrySafe, Overload: true}, 20 * time.Second},
		"2.0":                {must(retry.NewAWSStandard(retry.AWSStandardConfig{Revision: "2.0", MaxAttempts: 12, Budget: retry.Unlimited{}, Rand: most})), fault.Failure{Safety: fault.RetrySafe}, 20 * time.Second},
		"2.0, overload":      {must(retry.NewAWSStandard(retry.AWSStandardConfig{Revision: "2.0", MaxAttempts: 12, Budget: retry.Unlimited{}, Rand: most})), fault.Failure{Safety: fault.RetrySafe, Overload: true}, 20 * time.Second},
		"budgeted, one task": {must(retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 12, Budget: retry.Unlimited{}, Rand: most})), fault.Failure{Safety: fault.RetrySafe, Overload: true, Scope: fault.ScopeTask}, 20 * time.Millisecond},
	} {
		token := row.s.Begin(spillway.Call{})
		var last time.Duration
		for i := range 10 {
			if reason, wait := refresh(row.s, &token, row.f); reason != retry.ReasonOther || wait < last || wait > row.want {
				t.Fatalf("%s: retry %d: %v after %v, want at most %v", name, i, reason, wait, row.want)
			} else {
				last = wait
			}
		}
		if last != row.want {
			t.Errorf("%s: the waits end at %v, want %v", name, last, row.want)
		}
	}
}

// A hint of the maximum duration is not exceeded by its jitter.
func TestWaitsDoNotOverflow(t *testing.T) {
	s := must(retry.NewAWSStandard(retry.AWSStandardConfig{
		Revision: "2.0", MaxRetryAfter: -1, Budget: retry.Unlimited{}, Rand: func() float64 { return 1 },
	}))
	for _, hint := range []time.Duration{math.MaxInt64, math.MaxInt64 - time.Second, math.MaxInt64 / 11 * 10} {
		token := s.Begin(spillway.Call{})
		if reason, wait := refresh(s, &token, fault.Failure{Safety: fault.RetrySafe, HasRetryAfter: true, RetryAfter: hint}); reason != retry.ReasonOther || wait < hint {
			t.Errorf("a hint of %v: %v after %v", hint, reason, wait)
		}
	}
}

// A hedge whose answer counts is counted as such. The estimate of the 90th percentile rises by nine
// times the step by which it falls, so that it stays where one latency in ten is above it.
func TestHedgeEstimate(t *testing.T) {
	h := must(retry.NewHedge(retry.HedgeConfig{Percentile: 0.9}))
	for range 100 {
		h.Answered(time.Second, false)
	}
	if d, known := h.Delay(); !known || d != time.Second {
		t.Errorf("after 100 calls: %v, %t, want the greatest of them", d, known)
	}
	same := must(retry.NewHedge(retry.HedgeConfig{Percentile: 0.5}))
	for range 101 {
		same.Answered(time.Second, false)
	}
	if d, _ := same.Delay(); d >= time.Second {
		t.Errorf("as long as the greatest: %v, want less", d)
	}
	h.Answered(2*time.Second, false)
	above, known := h.Delay()
	h.Answered(time.Millisecond, false)
	d, _ := h.Delay()
	rise, fall := above.Seconds()-1, 1-d.Seconds()/above.Seconds()
	if !known || rise <= 0 || math.Abs(rise/fall-9) > 0.001 {
		t.Errorf("from 1s to %v after a greater latency, and to %v after a lower one", above, d)
	}
	h.Answered(d, false)
	if next, _ := h.Delay(); next >= d {
		t.Errorf("as long as the estimate: %v, want less than %v", next, d)
	}
	h.Begin()
	h.Settle(true)
	if s := h.Stats(time.Time{}); s.WonTotal != 1 {
		t.Errorf("%+v, want one that won", s)
	}
	h.Settle(false)
	if s := h.Stats(time.Time{}); s.WonTotal != 1 {
		t.Errorf("%+v after one that lost", s)
	}
}

// Without a number, failures that are no overload are retried once.
func TestOtherRetries(t *testing.T) {
	for other, want := range map[int]int{0: 1, 1: 1, 3: 3, -1: 20} {
		s := must(retry.NewMongoDB(retry.MongoDBConfig{OtherRetries: other}))
		token := s.Begin(spillway.Call{Deadline: t0.Add(time.Hour)})
		retries := 0
		for retries < 20 {
			if reason, _ := refresh(s, &token, fault.Failure{Safety: fault.RetrySafe}); reason != retry.ReasonOther {
				break
			}
			retries++
		}
		if retries != want {
			t.Errorf("OtherRetries %d: %d retries, want %d", other, retries, want)
		}
	}
}

// Customers over their quota have a budget of their own, of the tokens that a thousand calls
// earn. With no ratio it is that of all.
func TestBudgetOfCustomersOverTheirQuota(t *testing.T) {
	over := fault.Failure{Overload: true, Party: fault.Client, Safety: fault.RetrySafe, Scope: fault.ScopeCustomer}
	retries := func(s retry.Strategy, fails int) (n int) {
		for range fails {
			token := s.Begin(spillway.Call{})
			if reason, _ := refresh(s, &token, over); reason == retry.ReasonOther {
				n++
			}
		}
		return n
	}
	s := must(retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 2}))
	if n := retries(s, 1000); n != 100 {
		t.Errorf("%d retries of 1,000 calls, want a tenth", n)
	}
	for range 3000 { // calls that end in another way earn a full bucket, which is that of 1,000
		token := s.Begin(spillway.Call{})
		if reason, _ := refresh(s, &token, fault.Failure{Overload: true, Party: fault.Client, Scope: fault.ScopeCustomer}); reason == retry.ReasonOther {
			t.Fatal("a failure that is not safe to retry is retried")
		}
	}
	if n := retries(s, 501); n != 150 {
		t.Errorf("%d retries of 501 calls after a full bucket, want its 100 tokens and a tenth", n)
	}
	b := new(account)
	if n := retries(must(retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 2, Ratio: -1, Budget: b})), 10); n != 10 || b.withdrawn != 10 {
		t.Errorf("%d retries for %v tokens without a ratio, want 10 out of the budget of all", n, b.withdrawn)
	}
}

// Attempts are counted by the call, also where a strategy does not, and where a hedge was one
// more.
func TestAttemptsAreCounted(t *testing.T) {
	broken := errors.New("broken")
	err := retry.Do(t.Context(), &uncounted{}, spillway.Call{}, func(context.Context, *retry.Attempt) error { return broken })
	if e, ok := errors.AsType[*retry.Error](err); !ok || e.Attempts != 3 {
		t.Errorf("%v, want 3 attempts", err)
	}
	s := must(retry.NewBudgeted(retry.BudgetedConfig{}))
	err = retry.Do(t.Context(), s, spillway.Call{}, func(_ context.Context, a *retry.Attempt) error {
		a.Number++
		return broken
	})
	if e, ok := errors.AsType[*retry.Error](err); !ok || e.Attempts != 2 {
		t.Errorf("%v, want the attempt and its hedge", err)
	}
}

// uncounted is a strategy of three attempts without the tokens of a TokenSource.
type uncounted struct{ failed int }

func (u *uncounted) Begin(spillway.Call) retry.Token { return retry.Token{} }

func (u *uncounted) Refresh(time.Time, retry.Token, fault.Failure) (retry.Token, error) {
	if u.failed++; u.failed == 3 {
		return retry.Token{}, &retry.NotRetriedError{Reason: retry.ReasonAttempts}
	}
	return retry.Token{}, nil
}

func (u *uncounted) Succeed(retry.Token) error                { return nil }
func (u *uncounted) Release(retry.Token, fault.Failure) error { return nil }
