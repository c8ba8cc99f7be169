package spillxds

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
)

// newStrategy returns a strategy whose only bound is that of l.
func newStrategy(t testing.TB, l Limits) *strategy {
	t.Helper()
	limiter, err := inflight.New(inflight.Config{})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 4, Budget: retry.Unlimited{}})
	if err != nil {
		t.Fatal(err)
	}
	r := &retries{inflight: limiter}
	r.limits.Store(&l)
	return &strategy{inner, r}
}

var (
	failure    = fault.Failure{Safety: fault.RetrySafe, Overload: true}
	start      = time.Unix(1_700_000_000, 0)
	idempotent = spillway.Call{Idempotent: true}
)

func TestAllowedRetries(t *testing.T) {
	for _, row := range []struct {
		limits   Limits
		inflight int
		want     int64
	}{
		{Limits{Retries: 3}, 1000, 3},
		{Limits{Retries: 0}, 1000, 0},
		{Limits{Retries: unlimited}, 0, unlimited},
		{Limits{Retries: 3, RetryPercent: 20}, 0, 3},
		{Limits{Retries: 3, RetryPercent: 20}, 15, 3},
		{Limits{Retries: 3, RetryPercent: 20}, 19, 3},
		{Limits{Retries: 3, RetryPercent: 20}, 20, 4},
		{Limits{Retries: 0, RetryPercent: 100}, 77, 77},
	} {
		s := newStrategy(t, row.limits)
		for range row.inflight {
			s.inflight.TryAcquire()
		}
		if got := s.allowed(); got != row.want {
			t.Errorf("%+v with %d in flight: %d, want %d", row.limits, row.inflight, got, row.want)
		}
	}
}

func TestRetriesAreCountedFromDecisionToEnd(t *testing.T) {
	s := newStrategy(t, Limits{Retries: 2})
	is := func(want int64) {
		t.Helper()
		if got := s.active.Load(); got != want {
			t.Fatalf("%d retries under way, want %d", got, want)
		}
	}
	refresh := func(token retry.Token) retry.Token {
		t.Helper()
		next, err := s.Refresh(start, token, failure)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	a, b, c := s.Begin(idempotent), s.Begin(idempotent), s.Begin(idempotent)
	is(0)
	a = refresh(a)
	b = refresh(b)
	is(2)
	_, err := s.Refresh(start, c, failure)
	rejected, ok := errors.AsType[*retry.NotRetriedError](err)
	if !ok || rejected.Reason != retry.ReasonBudget || rejected.Capacity != 2 || s.rejected.Load() != 1 {
		t.Fatalf("a third retry: %v", err)
	}
	a = refresh(a) // a retry that fails gives its place to the next
	is(2)
	if err := s.Succeed(a); err != nil {
		t.Fatal(err)
	}
	is(1)
	if err := s.Succeed(a); !errors.Is(err, retry.ErrTokenUsed) {
		t.Fatalf("a token used twice: %v", err)
	}
	is(1)
	if err := s.Release(b, fault.Failure{Unsent: true}); err != nil {
		t.Fatal(err)
	}
	is(0)
	if err := s.Succeed(s.Begin(idempotent)); err != nil {
		t.Fatal(err)
	}
	if err := s.Succeed(retry.Token{}); !errors.Is(err, retry.ErrForeignToken) {
		t.Fatal(err)
	}
	is(0)
}

// TestRejectedRetryIsPaidBack: the user's own budget does not pay for what the
// cluster's limit rejects.
func TestRejectedRetryIsPaidBack(t *testing.T) {
	s := newStrategy(t, Limits{})
	own := &bucket{left: 5}
	inner, err := retry.NewBudgeted(retry.BudgetedConfig{Budget: own})
	if err != nil {
		t.Fatal(err)
	}
	s.Strategy = inner
	for range 10 {
		if _, err := s.Refresh(start, s.Begin(idempotent), failure); err == nil {
			t.Fatal("a retry where none is allowed")
		}
	}
	if own.left < 5 {
		t.Errorf("%v tokens left of 5", own.left)
	}
}

type bucket struct{ left float64 }

func (p *bucket) Withdraw(_ time.Time, _ string, n float64) (left, capacity float64, ok bool) {
	if p.left < n {
		return p.left, 5, false
	}
	p.left -= n
	return p.left, 5, true
}

func (p *bucket) Deposit(_ string, n float64) { p.left += n }

// TestNoRetryIsLeft ends calls in every way and looks for what is left.
func TestNoRetryIsLeft(t *testing.T) {
	s := newStrategy(t, Limits{Retries: 2})
	var under, most atomic.Int64
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for range 2000 {
				chaos(s, rng, &under, &most)
			}
		})
	}
	all.Wait()
	if n := s.active.Load(); n != 0 {
		t.Errorf("%d retries are left", n)
	}
	if most.Load() > 2 || most.Load() == 0 || s.rejected.Load() == 0 {
		t.Errorf("%d retries at once, of 2; %d rejected", most.Load(), s.rejected.Load())
	}
}

func chaos(s retry.Strategy, rng *rand.Rand, under, most *atomic.Int64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer func() { _ = recover() }()
	_ = retry.Do(ctx, s, idempotent, func(_ context.Context, a *retry.Attempt) error {
		if a.Number > 0 {
			n := under.Add(1)
			defer under.Add(-1)
			for m := most.Load(); n > m; m = most.Load() {
				if most.CompareAndSwap(m, n) {
					break
				}
			}
		}
		runtime.Gosched()
		switch rng.IntN(8) {
		case 0:
			panic("send")
		case 1:
			cancel()
			return ctx.Err()
		case 2:
			return &spillway.RejectedError{}
		case 3:
			return nil
		default:
			return busy{}
		}
	})
}

// busy is the answer of a backend that has no room.
type busy struct{}

func (busy) Error() string             { return "busy" }
func (busy) RetrySafety() fault.Safety { return fault.RetrySafe }
func (busy) Throttle() bool            { return true }

// A panicky budget panics at its next withdrawal.
type panickyBudget struct{ retry.Unlimited }

func (panickyBudget) Withdraw(time.Time, string, float64) (left, capacity float64, ok bool) {
	panic("budget")
}

// A retry whose budget panics at the next one has ended, once, also if its token is given back after that.
func TestPanicEndsARetry(t *testing.T) {
	s := newStrategy(t, Limits{Retries: 3})
	first, err := s.Refresh(start, s.Begin(idempotent), failure)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 4, Budget: panickyBudget{}})
	if err != nil {
		t.Fatal(err)
	}
	s.Strategy = inner
	second := s.Begin(idempotent)
	second.Attempt().Number = 1 // as if a retry
	s.active.Add(1)
	func() {
		defer func() {
			if p := recover(); p != "budget" {
				t.Errorf("recovered %v", p)
			}
		}()
		_, _ = s.Refresh(start, second, failure)
	}()
	_ = s.Release(second, failure)
	if n := s.active.Load(); n != 1 {
		t.Errorf("%d retries are in flight, want that of the other call (%v)", n, first)
	}
}
