package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
)

// TestBeforeRetry: what an attempt has left to do is done once another one is certain, and
// before the wait for it; not after the last one.
func TestBeforeRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := retry.NewBudgeted(retry.BudgetedConfig{
			MaxAttempts: 3, Budget: retry.Unlimited{}, Backoff: retry.Backoff{Base: time.Second}, Rand: func() float64 { return .5 },
		})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var log []string
		note := func(format string, args ...any) {
			log = append(log, fmt.Sprintf("%v ", time.Since(start))+fmt.Sprintf(format, args...))
		}
		_ = retry.Do(t.Context(), s, spillway.Call{Idempotent: true}, func(_ context.Context, a *retry.Attempt) error {
			n := a.Number
			note("attempt %d", n)
			if n != 1 {
				a.BeforeRetry = func(wait time.Duration) { note("after %d, wait %v", n, wait) }
			}
			return errors.New("broken")
		})
		want := []string{"0s attempt 0", "0s after 0, wait 500ms", "500ms attempt 1", "1.5s attempt 2"}
		if !slices.Equal(log, want) {
			t.Errorf("%q, want %q", log, want)
		}
	})
}

// A panic before a retry pays that back.
func TestPanicBeforeRetry(t *testing.T) {
	b := new(account)
	s, err := retry.NewBudgeted(retry.BudgetedConfig{Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil || b.withdrawn != 1 || b.refunded != 1 {
			t.Errorf("%+v, want the token of the retry to be paid back", *b)
		}
	}()
	_ = retry.Do(t.Context(), s, spillway.Call{Idempotent: true}, func(_ context.Context, a *retry.Attempt) error {
		a.BeforeRetry = func(time.Duration) { panic("before the retry") }
		return errors.New("broken")
	})
}

// account is a budget that counts tokens, except what a first attempt earns.
type account struct{ withdrawn, refunded float64 }

func (a *account) Withdraw(_ time.Time, _ string, tokens float64) (left, capacity float64, ok bool) {
	a.withdrawn += tokens
	return 10, 10, true
}

func (a *account) Deposit(_ string, tokens float64) {
	if tokens == 1 {
		a.refunded += tokens
	}
}
