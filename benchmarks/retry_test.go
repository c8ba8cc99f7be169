package benchmarks

import (
	"context"
	"slices"
	"testing"

	avast "github.com/avast/retry-go/v5"
	"github.com/cenkalti/backoff/v5"
	"github.com/failsafe-go/failsafe-go"
	failsafebudget "github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// A retrier makes a call to a backend in up to three attempts.
type retrier func(ctx context.Context) error

// A backend fails every failEvery-th attempt, or none if that is zero.
type backend struct{ attempts, failEvery int }

// serve is too large for the compiler to make a call of no cost of it.
//
//go:noinline
func (b *backend) serve() error {
	b.attempts++
	if b.failEvery > 0 && b.attempts%b.failEvery == 1 {
		return errUnavailable
	}
	return nil
}

// errUnavailable is worth a retry to every peer.
var errUnavailable error = unavailable{}

type unavailable struct{}

func (unavailable) Error() string { return "unavailable" }
func (unavailable) Failure() fault.Failure {
	return fault.Failure{Safety: fault.RetrySafe, Party: fault.Server}
}

// A retryImpl makes a retrier in front of a backend.
type retryImpl = impl[func(*backend) retrier]

// bare calls the backend: the floor, and no retry.
var bare = retryImpl{"bare", func(testing.TB) func(*backend) retrier {
	return func(b *backend) retrier { return func(context.Context) error { return b.serve() } }
}}

// retriers do not wait, so that what is measured is the deciding. Where there is
// a budget it pays for one retry per call.
var retriers = []retryImpl{
	{"spillway", ours(func() (retry.Strategy, error) { return retry.NewBudgeted(retry.BudgetedConfig{Ratio: 1}) })},
	{"failsafe", func(testing.TB) func(*backend) retrier { return failsafeRetrier }},
	{"avast", func(testing.TB) func(*backend) retrier { return avastRetrier }},
	{"avast-reused", func(testing.TB) func(*backend) retrier { return avastReused }},
	{"cenkalti", func(testing.TB) func(*backend) retrier { return cenkaltiRetrier }},
}

// strategies are the others of ours, which wait between attempts.
var strategies = []retryImpl{
	{"spillway-standard", ours(func() (retry.Strategy, error) { return retry.NewAWSStandard(retry.AWSStandardConfig{}) })},
	{"spillway-overload", ours(func() (retry.Strategy, error) { return retry.NewMongoDB(retry.MongoDBConfig{}) })},
}

func ours(strategy func() (retry.Strategy, error)) func(testing.TB) func(*backend) retrier {
	return func(tb testing.TB) func(*backend) retrier {
		s := must(strategy())(tb)
		return func(b *backend) retrier {
			attempt := func(context.Context, *retry.Attempt) error { return b.serve() }
			return func(ctx context.Context) error { return retry.Do(ctx, s, spillway.Call{Key: "users"}, attempt) }
		}
	}
}

func failsafeRetrier(b *backend) retrier {
	executor := failsafe.With[any](retrypolicy.NewBuilder[any]().
		WithMaxAttempts(3).
		WithBudget(failsafebudget.NewBuilder().WithMaxRate(1).Build()).
		Build())
	return func(ctx context.Context) error { return executor.WithContext(ctx).Run(b.serve) }
}

// avastRetrier makes a Retrier for each call, as a context of the call's own
// demands.
func avastRetrier(b *backend) retrier {
	return func(ctx context.Context) error { return newAvast(ctx).Do(b.serve) }
}

// avastReused makes one Retrier, to which the context of a call is nothing.
func avastReused(b *backend) retrier {
	r := newAvast(context.Background())
	return func(context.Context) error { return r.Do(b.serve) }
}

func newAvast(ctx context.Context) *avast.Retrier {
	return avast.New(avast.Context(ctx), avast.Attempts(3), avast.Delay(0), avast.DelayType(avast.FixedDelay), avast.LastErrorOnly(true))
}

func cenkaltiRetrier(b *backend) retrier {
	operation := func() (int, error) { err := b.serve(); return b.attempts, err }
	noWait := backoff.WithBackOff(&backoff.ZeroBackOff{})
	return func(ctx context.Context) error {
		_, err := backoff.Retry(ctx, operation, noWait, backoff.WithMaxTries(3))
		return err
	}
}

// succeeding are all that can be asked for a call that needs no retry.
func succeeding() []retryImpl {
	return slices.Concat(retriers[:1], strategies, retriers[1:], []retryImpl{bare})
}

func BenchmarkRetrySuccess(b *testing.B)    { benchRetry(b, succeeding(), backend{}) }
func BenchmarkRetryOneFailure(b *testing.B) { benchRetry(b, retriers, backend{failEvery: 2}) }

func benchRetry(b *testing.B, impls []retryImpl, at backend) {
	bench(b, impls, func(b *testing.B, front func(*backend) retrier) {
		call, ctx := front(&backend{failEvery: at.failEvery}), b.Context()
		for b.Loop() {
			if err := call(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestRetriers expects one attempt where it succeeds, and two where the first
// fails.
func TestRetriers(t *testing.T) {
	each(t, "success", succeeding(), func(t *testing.T, front func(*backend) retrier) {
		b := &backend{}
		if err := front(b)(t.Context()); err != nil || b.attempts != 1 {
			t.Errorf("%v after %d attempts, want success after 1", err, b.attempts)
		}
	})
	each(t, "one failure", retriers, func(t *testing.T, front func(*backend) retrier) {
		b := &backend{failEvery: 2}
		call := front(b)
		for range 100 {
			if err := call(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if b.attempts != 200 {
			t.Errorf("%d attempts for 100 calls, want 200", b.attempts)
		}
	})
}
