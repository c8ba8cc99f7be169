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

// served is a call too small to be inlined away.
//
//go:noinline
func served(context.Context, *retry.Attempt) error { return nil }

func BenchmarkBareCall(b *testing.B) {
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if served(ctx, nil) != nil {
			b.Fatal("failed")
		}
	}
}

// BenchmarkDo is the cost of Do when the first attempt succeeds, to be compared
// with BenchmarkBareCall.
func BenchmarkDo(b *testing.B) {
	for _, bench := range strategies(b) {
		b.Run(bench.name, func(b *testing.B) {
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if err := retry.Do(ctx, bench.Strategy, spillway.Call{Key: "users"}, served); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDoParallel(b *testing.B) {
	for _, bench := range strategies(b) {
		b.Run(bench.name, func(b *testing.B) {
			ctx := b.Context()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					retry.Do(ctx, bench.Strategy, spillway.Call{Key: "users"}, served)
				}
			})
		})
	}
}

// BenchmarkDoOneRetry is a call whose first attempt fails.
func BenchmarkDoOneRetry(b *testing.B) {
	s := must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}}))
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		err := retry.Do(ctx, s, spillway.Call{}, func(_ context.Context, a *retry.Attempt) error {
			if a.Number == 0 {
				return errOverload
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDoRejected is a call that fails, with nothing left in the budget.
func BenchmarkDoRejected(b *testing.B) {
	s := must(retry.NewAWSStandard(retry.AWSStandardConfig{Budget: must(budget.New(budget.Config{Empty: true}))}))
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		err := retry.Do(ctx, s, spillway.Call{}, func(context.Context, *retry.Attempt) error { return errOverload })
		if err == nil {
			b.Fatal("succeeded")
		}
	}
}

func BenchmarkRefresh(b *testing.B) {
	s := must(retry.NewAWSStandard(retry.AWSStandardConfig{Budget: retry.Unlimited{}}))
	now := time.Unix(1e9, 0)
	b.ReportAllocs()
	for b.Loop() {
		t, err := s.Refresh(now, s.Begin(spillway.Call{}), fault.Failure{Safety: fault.RetrySafe})
		if err != nil || s.Succeed(t) != nil {
			b.Fatal(err)
		}
	}
}

type named struct {
	name string
	retry.Strategy
}

func strategies(tb testing.TB) []named {
	tb.Helper()
	bucket := func() retry.Budget { return must(budget.New(budget.Config{Capacity: 1000})) }
	return []named{
		{"Overload", must(retry.NewMongoDB(retry.MongoDBConfig{}))},
		{"OverloadAdaptive", must(retry.NewMongoDB(retry.MongoDBConfig{Budget: bucket()}))},
		{"Standard", must(retry.NewAWSStandard(retry.AWSStandardConfig{}))},
		{"Budgeted", must(retry.NewBudgeted(retry.BudgetedConfig{}))},
		{"BudgetedEmptying", must(retry.NewBudgeted(retry.BudgetedConfig{Budget: must(budget.New(budget.Config{Capacity: 1e9, Empty: true}))}))},
	}
}

// must returns v of a constructor that cannot fail here.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// faultError is an error that says what it means.
type faultError fault.Failure

func (f faultError) Error() string          { return "unavailable" }
func (f faultError) Failure() fault.Failure { return fault.Failure(f) }

var (
	errOverload  error = faultError{Overload: true, Safety: fault.RetrySafe, Party: fault.Server}
	errTransient error = faultError{Safety: fault.RetrySafe, Party: fault.Server}
	errMaybe     error = faultError{Party: fault.Server}
	errFinal           = errors.New("no such user")
)
