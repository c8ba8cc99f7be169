package retry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

func ofTask(hint time.Duration) fault.Failure {
	return fault.Failure{
		Overload: true, Unprocessed: true, Party: fault.Server, Safety: fault.RetrySafe,
		Scope: fault.ScopeTask, RetryAfter: hint, HasRetryAfter: true,
	}
}

// TestElsewhereAtOnce: the hint of one task delays no retry at another; AWS and MongoDB
// keep their rules, and what no scope is said of is waited for.
func TestElsewhereAtOnce(t *testing.T) {
	const hint = 700 * time.Millisecond
	late := func() float64 { return .999 }
	unscoped := ofTask(hint)
	unscoped.Scope = fault.ScopeUnknown
	absurd := ofTask(1e9 * time.Second / 1e3)
	for _, row := range []struct {
		name        string
		s           retry.Strategy
		f           fault.Failure
		least, most time.Duration
	}{
		{"budgeted", must(retry.NewBudgeted(retry.BudgetedConfig{Rand: late})), ofTask(hint), 4 * time.Millisecond, 5 * time.Millisecond},
		{"budgeted, backoff", must(retry.NewBudgeted(retry.BudgetedConfig{Rand: late, Backoff: retry.Backoff{Base: time.Second}})), ofTask(hint), 0, 5 * time.Millisecond},
		{"budgeted, absurd hint", must(retry.NewBudgeted(retry.BudgetedConfig{Rand: late})), absurd, 0, 5 * time.Millisecond},
		{"budgeted, no scope", must(retry.NewBudgeted(retry.BudgetedConfig{Rand: late})), unscoped, hint, 2 * hint},
		{"AWS 2.1", must(retry.NewAWSStandard(retry.AWSStandardConfig{})), ofTask(hint), hint, 6 * time.Second},
		{"AWS 2.0", must(retry.NewAWSStandard(retry.AWSStandardConfig{Revision: "2.0"})), ofTask(hint), hint, 3 * time.Second},
		{"MongoDB", must(retry.NewMongoDB(retry.MongoDBConfig{})), ofTask(hint), hint, time.Second},
	} {
		next, err := row.s.Refresh(t0, row.s.Begin(spillway.Call{}), row.f)
		if d := next.Delay(); err != nil || d < row.least || d > row.most {
			t.Errorf("%s: %v, %v; want %v to %v", row.name, d, err, row.least, row.most)
		}
	}
}

// TestElsewhereHasToHelp: if no other task serves the calls that one rejects, all but a few
// calls wait for the time in the hint, until calls are served again; if another task does,
// none waits.
func TestElsewhereHasToHelp(t *testing.T) {
	const hint = time.Second
	s := must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}}))
	atOnce := func(calls int, end func(retry.Token)) (n int) {
		for range calls {
			next, err := s.Refresh(t0, s.Begin(spillway.Call{}), ofTask(hint))
			if err != nil {
				t.Fatal(err)
			}
			if next.Delay() < hint {
				n++
			}
			end(next)
		}
		return n
	}
	served := func(token retry.Token) { _ = s.Succeed(token) }
	rejected := func(token retry.Token) { _ = s.Release(token, ofTask(hint)) }
	if n := atOnce(1000, served); n != 1000 {
		t.Errorf("others serve all: %d of 1000 went there at once", n)
	}
	if n := atOnce(1000, rejected); n != 10 {
		t.Errorf("others serve nothing: %d of 1000 went there at once, want 10", n)
	}
	for range 1000 {
		served(s.Begin(spillway.Call{}))
	}
	if n := atOnce(10, rejected); n != 10 {
		t.Errorf("after a good time: %d of 10 went elsewhere at once", n)
	}
}

// TestElsewhereTogether: calls that one task rejects at the same time all go to other tasks at
// once, however many they are.
func TestElsewhereTogether(t *testing.T) {
	s := must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}}))
	var retries []retry.Token
	for i := range 500 {
		next, err := s.Refresh(t0, s.Begin(spillway.Call{}), ofTask(time.Second))
		if err != nil || next.Delay() >= time.Second {
			t.Fatalf("retry %d waits for %v, %v", i, next.Delay(), err)
		}
		retries = append(retries, next)
	}
	for i, next := range retries {
		of := s.Succeed
		if i%2 == 0 { // an attempt that was not sent, or whose caller has left, says nothing
			of = func(token retry.Token) error {
				return s.Release(token, fault.Failure{Unsent: i%4 == 0, Canceled: i%4 != 0})
			}
		}
		if err := of(next); err != nil {
			t.Fatal(err)
		}
	}
	if next, err := s.Refresh(t0, s.Begin(spillway.Call{}), ofTask(time.Second)); err != nil || next.Delay() >= time.Second {
		t.Errorf("the next retry waits for %v, %v", next.Delay(), err)
	}
}

// TestElsewhereForEver: a backend whose tasks all say "elsewhere" gets three attempts of
// a call, and retries at most a tenth of the calls.
func TestElsewhereForEver(t *testing.T) {
	s := must(retry.NewBudgeted(retry.BudgetedConfig{}))
	const calls = 1000
	attempts := 0
	for range calls {
		token := s.Begin(spillway.Call{})
		of := 0
		for err := error(nil); err == nil; of++ {
			token, err = s.Refresh(t0, token, ofTask(0))
		}
		if of > 3 {
			t.Fatalf("%d attempts", of)
		}
		attempts += of
	}
	if attempts > calls+calls/10 {
		t.Errorf("%d attempts of %d calls", attempts, calls)
	}
}

// TestQuotaSharesNoBudget: however many rejections of one customer there are, they take
// nothing from the budget of the others and add nothing to it, and their own retries are
// at most a tenth of them.
func TestQuotaSharesNoBudget(t *testing.T) {
	quota := fault.Failure{Overload: true, Party: fault.Client, Safety: fault.RetrySafe, HasRetryAfter: true}
	b := must(budget.New(budget.Config{Capacity: 100, Empty: true}))
	b.Deposit("", 7)
	s := must(retry.NewBudgeted(retry.BudgetedConfig{Budget: b}))
	const calls = 10_000
	retried := 0
	for i := range calls {
		next, err := s.Refresh(t0, s.Begin(spillway.Call{}), quota)
		if err != nil {
			continue
		}
		if retried++; i%2 == 0 {
			_, _ = s.Refresh(t0, next, fault.Failure{Unsent: true}) // paid back to whom it was taken from
			retried--
		}
	}
	if left := b.Stats(time.Time{}).Tokens; left != 7 || retried < calls/20 || retried > calls/10 {
		t.Errorf("%d retries, %v tokens of the others", retried, left)
	}
	if _, err := s.Refresh(t0, s.Begin(spillway.Call{}), overload); err != nil {
		t.Errorf("another customer: %v", err)
	}
}

// TestFirstCallsAreRetried: a process that has just started has three retries, which its
// first 30 calls repay; the error of the next is not that of a rejected call.
func TestFirstCallsAreRetried(t *testing.T) {
	s := must(retry.NewBudgeted(retry.BudgetedConfig{}))
	retried := 0
	for i := range 30 {
		token := s.Begin(spillway.Call{})
		next, err := s.Refresh(t0, token, overload)
		if err == nil {
			retried++
			if err = s.Release(next, fault.Failure{}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		rejected, ok := errors.AsType[*retry.NotRetriedError](err)
		if !ok || rejected.Reason != retry.ReasonBudget || errors.Is(err, spillway.ErrRejected) || i < 3 {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if retried != 3 {
		t.Errorf("%d retries, want 3", retried)
	}
}

// TestOneAttempt: where retries are switched off, the failure is passed on as it came,
// for the caller to retry.
func TestOneAttempt(t *testing.T) {
	s := must(retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 1}))
	failure := errors.New("failed")
	err := retry.Do(t.Context(), s, spillway.Call{Idempotent: true}, func(_ context.Context, _ *retry.Attempt) error { return failure })
	if err != failure { // the very same
		t.Errorf("got %v", err)
	}
}
