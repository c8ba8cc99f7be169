package budget_test

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/retry"
)

var (
	_ retry.Budget = (*budget.Bucket)(nil)
	_ retry.Budget = (*budget.Endpoints)(nil)
	_ retry.Budget = (*budget.RetryThrottling)(nil)
)

var t0 = time.Unix(1_700_000_000, 0)

// must returns v of a constructor that cannot fail here.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestBucket(t *testing.T) {
	type step struct {
		at   time.Duration
		take float64 // negative: deposit as much
		left float64
		ok   bool
	}
	for _, test := range []struct {
		name   string
		config budget.Config
		steps  []step
	}{
		{"starts full", budget.Config{}, []step{{0, 500, 0, true}, {0, 0.001, 0, false}}},
		{"all or nothing", budget.Config{Capacity: 20}, []step{{0, 14, 6, true}, {0, 14, 6, false}, {0, 5, 1, true}}},
		{"starts empty", budget.Config{Empty: true}, []step{{0, 1, 0, false}, {0, -1, 1, true}, {0, 1, 0, true}}},
		{"tenths add up", budget.Config{Empty: true}, []step{
			{0, -.1, .1, true}, {0, -.1, .2, true}, {0, -.1, .3, true}, {0, -.1, .4, true}, {0, -.1, .5, true},
			{0, -.1, .6, true}, {0, -.1, .7, true}, {0, -.1, .8, true}, {0, -.1, .9, true}, {0, 1, .9, false},
			{0, -.1, 1, true}, {0, 1, 0, true},
		}},
		{"rounded to the nearest", budget.Config{Capacity: 3, Empty: true}, []step{{0, -1.001, 1.001, true}, {0, 1.001, 0, true}}},
		{"never above capacity", budget.Config{Capacity: 1000}, []step{{0, -1.1, 1000, true}, {0, 1, 999, true}, {0, -1e300, 1000, true}}},
		{"what is no amount is nothing", budget.Config{Capacity: 2}, []step{
			{0, 1, 1, true}, {0, math.Inf(-1), 2, true}, {0, math.NaN(), 2, true}, {0, math.Inf(1), 2, false},
		}},
		{"time alone brings nothing", budget.Config{Capacity: 1}, []step{{0, 1, 0, true}, {time.Hour, 1, 0, false}}},
		{"reserve", budget.Config{Empty: true, MinPerSecond: 2}, []step{
			{0, 20, 0, true},
			{499 * time.Millisecond, 1, .998, false},
			{500 * time.Millisecond, 1, 0, true},
			{time.Hour, 0, 20, true}, // ten seconds' worth and no more
		}},
		{"reserve refills below earnings only", budget.Config{Capacity: 100, MinPerSecond: 1}, []step{
			{0, 50, 50, true},
			{time.Minute, 45, 5, true}, // above the reserve of 10 time adds nothing
			{time.Minute + 2*time.Second, 1, 6, true},
			{time.Hour, 0, 10, true},
		}},
		{"time that steps back is none", budget.Config{Empty: true, MinPerSecond: 1}, []step{
			{time.Minute, 10, 0, true}, {0, 1, 0, false}, {time.Minute, 1, 0, false}, {time.Minute + time.Second, 1, 0, true},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := must(budget.New(test.config))
			for i, s := range test.steps {
				ok := true
				if s.take < 0 {
					b.Deposit("", -s.take)
				} else {
					_, _, ok = b.Withdraw(t0.Add(s.at), "", s.take)
				}
				left := b.Stats(time.Time{}).Tokens
				if math.Abs(left-s.left) > 1e-10 || ok != s.ok {
					t.Fatalf("step %d: %v left, %v; want %v, %v", i, left, ok, s.left, s.ok)
				}
			}
		})
	}
}

// TestReserveOfFewTokens: a reserve fills as fast under many rejected retries,
// each seeing a fraction of a unit.
func TestReserveOfFewTokens(t *testing.T) {
	b := must(budget.New(budget.Config{Empty: true, MinPerSecond: .001}))
	b.Withdraw(t0, "", .01)
	for i := range 40_000 {
		b.Withdraw(t0.Add(time.Duration(i)*100), "", 1)
	}
	if got := b.Stats(time.Time{}).Tokens; got < 2.9e-6 || got > 4e-6 {
		t.Errorf("%v tokens after 4 ms, want 3e-6 at least", got)
	}
}

func TestBucketStats(t *testing.T) {
	b := must(budget.New(budget.Config{Capacity: 10}))
	b.Withdraw(t0, "", 4)
	b.Withdraw(t0, "", 4)
	if left, capacity, ok := b.Withdraw(t0, "", 4); left != 2 || capacity != 10 || ok {
		t.Errorf("third withdrawal: %v of %v left, %v; want 2 of 10, false", left, capacity, ok)
	}
	if got, want := b.Stats(time.Time{}), (budget.Stats{Tokens: 2, Capacity: 10, PaidTotal: 2, RejectedTotal: 1}); got != want {
		t.Errorf("Stats() = %+v, want %+v", got, want)
	}
}

func TestBadConfig(t *testing.T) {
	for _, test := range []struct {
		config budget.Config
		want   string
	}{
		{budget.Config{Capacity: -3}, "Capacity is -3, must be positive and at most"},
		{budget.Config{Capacity: math.NaN()}, "Capacity is NaN"},
		{budget.Config{Capacity: 2e9}, "Capacity is 2e+09, must be positive and at most 1e+09"},
		{budget.Config{MinPerSecond: -1}, "MinPerSecond is -1"},
		{budget.Config{MinPerSecond: 51}, "MinPerSecond is 51, must be 0 to a tenth of Capacity (500)"},
		{budget.Config{MinPerSecond: math.NaN()}, "MinPerSecond is NaN"},
	} {
		if _, err := budget.New(test.config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("New(%+v): %v, want an error with %q", test.config, err, test.want)
		}
		if _, err := budget.NewEndpoints(budget.EndpointsConfig{Bucket: test.config}); err == nil {
			t.Errorf("NewEndpoints takes %+v", test.config)
		}
	}
	for _, most := range []budget.Config{{Capacity: 1e9}, {Capacity: 10, Credit: 10}, {MinPerSecond: 50}} {
		if _, err := budget.New(most); err != nil {
			t.Errorf("New(%+v): %v", most, err)
		}
	}
	if _, err := budget.NewEndpoints(budget.EndpointsConfig{MaxEndpoints: -1}); err == nil || !strings.Contains(err.Error(), "MaxEndpoints is -1") {
		t.Errorf("NewEndpoints with MaxEndpoints -1: %v", err)
	}
}

// TestConcurrent has many goroutines use one bucket: nothing may be lost or
// made, and a watcher must never see it above its capacity or below zero.
func TestConcurrent(t *testing.T) {
	const workers, rounds, capacity = 8, 2000, 40
	b := must(budget.New(budget.Config{Capacity: capacity}))
	var balance atomic.Int64 // withdrawn less deposited
	var wg, watch sync.WaitGroup
	done := make(chan struct{})
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if s := b.Stats(time.Time{}); s.Tokens < 0 || s.Tokens > capacity {
					t.Errorf("bucket of %v holds %v", capacity, s.Tokens)
					return
				}
			}
		}
	})
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				n := float64(1 + (w+i)%14)
				if _, _, ok := b.Withdraw(t0, "", n); ok {
					balance.Add(int64(n))
					if i%3 > 0 {
						balance.Add(-int64(n)) // before, so that the sum is never too low
						b.Deposit("", n)
					}
				}
			}
		})
	}
	wg.Wait()
	close(done)
	watch.Wait()
	if got := b.Stats(time.Time{}).Tokens; got != capacity-float64(balance.Load()) {
		t.Errorf("%v tokens left, %v are out of %v", got, balance.Load(), capacity)
	}
}

// TestConcurrentReserve has many goroutines see the same seconds pass: each of
// them must be credited once.
func TestConcurrentReserve(t *testing.T) {
	b := must(budget.New(budget.Config{Capacity: 100, Empty: true, MinPerSecond: 10}))
	b.Withdraw(t0, "", 100)
	var paid atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				if _, _, ok := b.Withdraw(t0.Add(time.Duration(i)*5*time.Millisecond), "", 1); ok {
					paid.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if got := float64(paid.Load()) + b.Stats(time.Time{}).Tokens; got > 49.95+1e-6 {
		t.Errorf("%v tokens in 4.995 s at 10 per second", got)
	}
}

func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	plain := must(budget.New(budget.Config{}))
	reserve := must(budget.New(budget.Config{MinPerSecond: 1}))
	endpoints := must(budget.NewEndpoints(budget.EndpointsConfig{}))
	throttling := must(budget.NewRetryThrottling(10, .1))
	endpoints.Deposit("a", 1)
	endpoints.Deposit("b", 1)
	for _, b := range []retry.Budget{plain, reserve, endpoints, throttling} {
		now := t0
		if n := testing.AllocsPerRun(1000, func() {
			now = now.Add(time.Millisecond)
			b.Withdraw(now, "a", 5)
			b.Withdraw(now, "b", 500)
			b.Deposit("a", .5)
		}); n != 0 {
			t.Errorf("%T allocates %v times", b, n)
		}
	}
}

// TestCreditFits: what a bucket starts with on credit is never above its capacity.
func TestCreditFits(t *testing.T) {
	b, err := budget.New(budget.Config{Capacity: 10, Empty: true, Credit: 10, MinPerSecond: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if s := b.Stats(time.Time{}); s.Tokens != 10 {
		t.Errorf("%+v, want 10 tokens", s)
	}
}

// TestReserveIsCountedInSteps: time earns tokens in steps of 1000 units, of which 1e9 are a
// token, from the first full step on.
func TestReserveIsCountedInSteps(t *testing.T) {
	b, err := budget.New(budget.Config{Capacity: 100, Empty: true, MinPerSecond: 1})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b.Withdraw(now, "", 10)
	for _, row := range []struct {
		at   time.Duration
		want float64
	}{{999, 0}, {1000, 1000e-9}, {1999, 1000e-9}, {2000, 2000e-9}} {
		b.Withdraw(now.Add(row.at), "", 1)
		if got := b.Stats(now).Tokens; got != row.want {
			t.Errorf("after %v: %v tokens, want %v", row.at, got, row.want)
		}
	}
}
