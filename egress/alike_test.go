package egress_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// A scriptedError is how an attempt of a scriptedCall ends.
type scriptedError struct {
	failure fault.Failure
	takes   time.Duration
	attempt int
}

func (e *scriptedError) Error() string          { return fmt.Sprintf("attempt %d has failed", e.attempt) }
func (e *scriptedError) Failure() fault.Failure { return e.failure }

// A scriptedCall is a call, and how its attempts end: after all of these, one succeeds.
type scriptedCall struct {
	call     spillway.Call
	timeout  time.Duration // of the context; 0: none
	attempts []*scriptedError
}

func newScriptedCall(r *rand.Rand) (s scriptedCall) {
	s.call = spillway.Call{Key: "a", Kind: spillway.Kind(r.IntN(3)), Idempotent: r.IntN(2) == 0, LongPoll: r.IntN(4) == 0}
	if r.IntN(2) == 0 {
		s.timeout = time.Duration(1 + r.Int64N(int64(3*time.Second)))
	}
	for i := range r.IntN(7) {
		f := fault.Failure{
			Safety: []fault.Safety{fault.RetrySafe, fault.RetrySafe, fault.RetryUnknown, fault.RetryUnsafe}[r.IntN(4)],
			Scope:  fault.Scope(r.IntN(4)), Overload: r.IntN(2) == 0, Timeout: r.IntN(4) == 0, Unprocessed: r.IntN(4) == 0,
			DontRetry: r.IntN(16) == 0, Canceled: r.IntN(16) == 0, Unsent: r.IntN(8) == 0, Unanswered: r.IntN(4) == 0,
		}
		if r.IntN(4) == 0 {
			f.HasRetryAfter, f.RetryAfter = true, time.Duration(r.Int64N(int64(2*time.Second)))
		}
		s.attempts = append(s.attempts, &scriptedError{f, time.Duration(r.Int64N(int64(300 * time.Millisecond))), i})
	}
	return s
}

// play makes the call by do, and returns all that can be seen of it.
func (s *scriptedCall) play(t *testing.T, do func(ctx context.Context, send func(context.Context, *retry.Attempt) error) error) string {
	t.Helper()
	ctx, start, text := t.Context(), time.Now(), ""
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	sent := 0
	err := do(ctx, func(ctx context.Context, a *retry.Attempt) error {
		text += fmt.Sprintf("%d at %v; ", a.Number, time.Since(start))
		a.BeforeRetry = func(wait time.Duration) { text += fmt.Sprintf("a wait of %v; ", wait) }
		if sent++; sent > len(s.attempts) {
			return nil
		}
		e := s.attempts[sent-1]
		if err := sleep(ctx, e.takes); err != nil {
			return err
		}
		return e
	})
	if stopped, ok := errors.AsType[*retry.Error](err); ok {
		text += fmt.Sprintf("%v after %d; ", stopped.Reason, stopped.Attempts)
	}
	return text + fmt.Sprintf("%v at %v", err, time.Since(start))
}

// strategy returns s. It panics if err is not nil: then the test has a wrong configuration.
func strategy[S retry.Strategy](s S, err error) retry.Strategy {
	if err != nil {
		panic(err)
	}
	return s
}

// TestRetriesAreThoseOfDo: without its other policies a Client makes the attempts of a call at the
// same times as [retry.Do], ends it with the same error, and leaves the strategy in the same state.
func TestRetriesAreThoseOfDo(t *testing.T) {
	newBudget := func() retry.Budget { // without a level, so that routes do not share it
		e, err := budget.NewEndpoints(budget.EndpointsConfig{Bucket: budget.Config{Capacity: 100}})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	strategies := map[string]func(random func() float64) retry.Strategy{
		"budgeted": func(random func() float64) retry.Strategy {
			return strategy(retry.NewBudgeted(retry.BudgetedConfig{Budget: newBudget(), Backoff: retry.Backoff{Base: 100 * time.Millisecond}, Rand: random}))
		},
		"AWS": func(random func() float64) retry.Strategy {
			return strategy(retry.NewAWSStandard(retry.AWSStandardConfig{Budget: newBudget(), Rand: random}))
		},
		"MongoDB": func(random func() float64) retry.Strategy {
			return strategy(retry.NewMongoDB(retry.MongoDBConfig{Budget: newBudget(), Rand: random}))
		},
	}
	for name, newStrategy := range strategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newStrategy(rand.New(rand.NewPCG(1, 1)).Float64)
				b := newStrategy(rand.New(rand.NewPCG(1, 1)).Float64)
				client := must(t, egress.Config{Retry: b, ThrottleMode: spillway.ModeOff, InFlightMode: spillway.ModeOff})
				for seed := range uint64(300) {
					s := newScriptedCall(rand.New(rand.NewPCG(seed, 2)))
					want := s.play(t, func(ctx context.Context, send func(context.Context, *retry.Attempt) error) error {
						return retry.Do(ctx, a, s.call, send)
					})
					got := s.play(t, func(ctx context.Context, send func(context.Context, *retry.Attempt) error) error {
						return client.Do(ctx, s.call, func(ctx context.Context, a *egress.Attempt) error { return send(ctx, a.Attempt) })
					})
					if got != want {
						t.Fatalf("seed %d, %+v:\n%s\nand by Do\n%s", seed, s, got, want)
					}
				}
				type stats interface {
					Stats(now time.Time) retry.Stats
				}
				if got, want := b.(stats).Stats(time.Now()), a.(stats).Stats(time.Now()); got != want {
					t.Errorf("%+v, and by Do %+v", got, want)
				}
			})
		})
	}
}
