package retry_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

func TestBackoff(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		backoff retry.Backoff
		n       int
		u       float64
		want    time.Duration
	}{
		{retry.Backoff{}, 0, .9, 0},
		{retry.Backoff{}, math.MaxInt, .9, 0},
		{retry.Backoff{Base: 100 * ms, Max: 10 * time.Second}, 0, 1, 100 * ms},
		{retry.Backoff{Base: 100 * ms, Max: 10 * time.Second}, 3, .5, 400 * ms},
		{retry.Backoff{Base: 100 * ms, Max: 10 * time.Second}, 7, 1, 10 * time.Second},
		{retry.Backoff{Base: 100 * ms, Max: 10 * time.Second}, math.MaxInt, .5, 5 * time.Second},
		{retry.Backoff{Base: 100 * ms, Max: 10 * time.Second}, math.MinInt, 1, 100 * ms},
		{retry.Backoff{Base: time.Second, Max: ms}, 0, 1, ms},
		{retry.Backoff{Base: ms}, 4, 1, 16 * ms},
		{retry.Backoff{Base: ms}, 64, 1, math.MaxInt64},
		{retry.Backoff{Base: 1}, 62, 1, 1 << 62},
		{retry.Backoff{Base: 1}, 63, math.Nextafter(1, 0), math.MaxInt64 - 1023},
		{retry.Backoff{Base: ms, Max: ms}, 0, 0, 0},
		{retry.Backoff{Base: ms, Max: ms}, 0, -1, 0},
		{retry.Backoff{Base: ms, Max: ms}, 0, 7, ms},
		{retry.Backoff{Base: ms, Max: ms}, 0, math.NaN(), ms},
	} {
		if got := test.backoff.Delay(test.n, test.u); got != test.want {
			t.Errorf("%v.Delay(%d, %v) = %v, want %v", test.backoff, test.n, test.u, got, test.want)
		}
	}
}

// FuzzBackoff compares with arithmetic that cannot overflow.
func FuzzBackoff(f *testing.F) {
	f.Add(int64(1e8), int64(1e10), 3, .5)
	f.Add(int64(math.MaxInt64), int64(0), 1, 1.0)
	f.Fuzz(func(t *testing.T, base, limit int64, n int, u float64) {
		if base < 0 || limit < 0 || n < 0 || n > 1000 || !(u >= 0 && u <= 1) {
			t.Skip()
		}
		want := new(big.Int).Lsh(big.NewInt(base), uint(n))
		most := big.NewInt(limit)
		if limit == 0 {
			most.SetInt64(math.MaxInt64)
		}
		if want.Cmp(most) > 0 {
			want = most
		}
		b := retry.Backoff{Base: time.Duration(base), Max: time.Duration(limit)}
		ceiling := b.Ceiling(n)
		if int64(ceiling) != want.Int64() {
			t.Fatalf("%v.Ceiling(%d) = %d, want %d", b, n, ceiling, want)
		}
		if got := b.Delay(n, u); got < 0 || got > ceiling || math.Abs(float64(got)-u*float64(ceiling)) > 1+1e-15*float64(ceiling) {
			t.Fatalf("%v.Delay(%d, %v) = %d, ceiling %d", b, n, u, got, ceiling)
		}
	})
}

// TestHints holds how each strategy reads the backend's wish to be left alone.
func TestHints(t *testing.T) {
	const second = time.Second
	backoff := retry.Backoff{Base: second, Max: 10 * second}
	generic := must(retry.NewBudgeted(retry.BudgetedConfig{Backoff: backoff, Budget: retry.Unlimited{}, Rand: half}))
	for _, test := range []struct {
		name string
		retry.Strategy
		hint     time.Duration
		deadline time.Duration
		want     time.Duration
		reason   retry.Reason
	}{
		{"shorter than the backoff", generic, second / 10, 0, second/10 + second/2, retry.ReasonOther},
		{"longer", generic, 20 * second, 0, 20*second + second, retry.ReasonOther},
		{"zero asks for nothing", generic, 0, 0, second / 2, retry.ReasonOther},
		{"negative is none", generic, -second, 0, second / 2, retry.ReasonOther},
		{"the longest", generic, 60 * second, 0, 63 * second, retry.ReasonOther},
		{"too long", generic, 61 * second, 0, 0, retry.ReasonRetryAfter},
		{"past the deadline", generic, 20 * second, 20 * second, 0, retry.ReasonDeadline},
		{"at once but for the hint", must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}, Rand: half})),
			10 * second, 0, 10*second + second/2, retry.ReasonOther},
		{"any length", must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}, MaxRetryAfter: -1, Rand: half})),
			1000 * time.Hour, 0, 1050 * time.Hour, retry.ReasonOther},
		{"beyond all time", must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}, MaxRetryAfter: -1, Rand: half})),
			math.MaxInt64, 0, math.MaxInt64, retry.ReasonOther},
		{"overload", must(retry.NewMongoDB(retry.MongoDBConfig{Rand: half})), 2 * second, 0, 2*second + second/10, retry.ReasonOther},
		{"standard 2.0", must(retry.NewAWSStandard(retry.AWSStandardConfig{Revision: "2.0", Rand: half})), 2 * second, 0, 2*second + second/2, retry.ReasonOther},
		{"standard 2.1, below", must(retry.NewAWSStandard(retry.AWSStandardConfig{Rand: half})), second / 10, 0, second / 2, retry.ReasonOther},
		{"standard 2.1, within", must(retry.NewAWSStandard(retry.AWSStandardConfig{Rand: half})), 2 * second, 0, 2 * second, retry.ReasonOther},
		{"standard 2.1, above", must(retry.NewAWSStandard(retry.AWSStandardConfig{Rand: half})), 1000 * second, 0, 5*second + second/2, retry.ReasonOther},
	} {
		var call spillway.Call
		if test.deadline > 0 {
			call.Deadline = t0.Add(test.deadline)
		}
		token := test.Begin(call)
		f := fault.Failure{Overload: true, Safety: fault.RetrySafe, RetryAfter: test.hint, HasRetryAfter: true}
		if reason, delay := refresh(test, &token, f); reason != test.reason || delay != test.want {
			t.Errorf("%s: %v, %v; want %v, %v", test.name, delay, reason, test.want, test.reason)
		}
	}
}

func half() float64 { return .5 }
