package throttle_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/throttle"
)

// The clock is not read here: egress reads it once per attempt for all policies.

func BenchmarkServed(b *testing.B) {
	th := must(b, throttle.Config{})
	now := time.Now() // with a monotonic reading, as in production
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		ticket, _ := th.Admit(now, spillway.Call{})
		ticket.Settle(now, spillway.OutcomeServed)
	}
}

func BenchmarkServedParallel(b *testing.B) {
	th := must(b, throttle.Config{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		now := time.Now() // with a monotonic reading, as in production
		for pb.Next() {
			now = now.Add(time.Microsecond)
			ticket, _ := th.Admit(now, spillway.Call{})
			ticket.Settle(now, spillway.OutcomeServed)
		}
	})
}

func BenchmarkHalfOverloaded(b *testing.B) {
	th := must(b, throttle.Config{})
	now := time.Now() // with a monotonic reading, as in production
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Microsecond)
		if ticket, err := th.Admit(now, spillway.Call{}); err == nil {
			ticket.Settle(now, spillway.OutcomeServed+spillway.Outcome(i%2*2))
		}
	}
}

func BenchmarkRejected(b *testing.B) {
	th := must(b, throttle.Config{Rand: func() float64 { return 0 }})
	now := rejecting(th)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := th.Admit(now, spillway.Call{}); err == nil {
			b.Fatal("admitted")
		}
	}
}

// BenchmarkRejectedMost is BenchmarkRejected for a backend that accepts one call of a hundred: each
// decision needs a random number.
func BenchmarkRejectedMost(b *testing.B) {
	th := must(b, throttle.Config{})
	now := time.Now() // with a monotonic reading, as in production
	served := 0
	for i := range 20_000 {
		now = now.Add(100 * time.Microsecond)
		ticket, err := th.Admit(now, spillway.Call{})
		switch {
		case err != nil:
		case served < i/100:
			served++
			ticket.Settle(now, spillway.OutcomeServed)
		default:
			ticket.Settle(now, spillway.OutcomeOverloaded)
		}
	}
	if p := th.Stats(now)[spillway.Critical.Index()].Probability; p < 0.9 || p == 1 {
		b.Fatalf("a call is rejected with the probability %v, want 0.9 or more, and less than 1", p)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = th.Admit(now, spillway.Call{})
	}
}

func BenchmarkRejectedParallel(b *testing.B) {
	th := must(b, throttle.Config{Rand: func() float64 { return 0 }})
	now := rejecting(th)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _ = th.Admit(now, spillway.Call{})
		}
	})
}

// rejecting makes th reject, and returns the time at which it does.
func rejecting(th *throttle.Throttle) time.Time {
	now := time.Now() // with a monotonic reading, as in production
	for range 1000 {
		ticket, _ := th.Admit(now, spillway.Call{})
		ticket.Settle(now, spillway.OutcomeOverloaded)
	}
	return now
}
