package benchmarks

import (
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed90641741/spillway/budget"
)

// A payer pays for a retry, and reports whether it did.
type payer func() bool

// plenty has tokens for every retry: ours earns the next one by a success, a
// bucket that fills with time gets it a nanosecond later.
var plenty = []impl[payer]{
	{"spillway", func(tb testing.TB) payer {
		bucket := newBucket(tb, budget.Config{})
		return func() bool {
			_, _, ok := bucket.Withdraw(time.Now(), "", 1)
			bucket.Deposit("", 1)
			return ok
		}
	}},
	{"xtime", func(testing.TB) payer { return rate.NewLimiter(1e9, 500).Allow }},
}

// spent has no tokens left.
var spent = []impl[payer]{
	{"spillway", func(tb testing.TB) payer {
		bucket := newBucket(tb, budget.Config{Empty: true})
		return func() bool { _, _, ok := bucket.Withdraw(time.Now(), "", 1); return ok }
	}},
	{"xtime", func(testing.TB) payer {
		limiter := rate.NewLimiter(rate.Every(24*time.Hour), 1)
		limiter.Allow()
		return limiter.Allow
	}},
}

func newBucket(tb testing.TB, c budget.Config) *budget.Bucket {
	tb.Helper()
	return must(budget.New(c))(tb)
}

func BenchmarkBudgetPaid(b *testing.B)     { bench(b, plenty, benchAsk) }
func BenchmarkBudgetRejected(b *testing.B) { bench(b, spent, benchAsk) }

// TestPayers expects every retry paid from a bucket with plenty, and none from one
// that is spent.
func TestPayers(t *testing.T) {
	each(t, "plenty", plenty, wantYes[payer](1000))
	each(t, "spent", spent, wantYes[payer](0))
}

// benchAsk is the loop for whatever answers yes or no.
func benchAsk[F ~func() bool](b *testing.B, ask F) {
	for b.Loop() {
		ask()
	}
}

// wantYes asks a thousand times and expects so many times yes.
func wantYes[F ~func() bool](want int) func(*testing.T, F) {
	return func(t *testing.T, ask F) {
		yes := 0
		for range 1000 {
			if ask() {
				yes++
			}
		}
		if yes != want {
			t.Errorf("%d of 1000 times yes, want %d", yes, want)
		}
	}
}
