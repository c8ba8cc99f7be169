package oteltest

import (
	"context"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillotel"
)

func costs() map[string]spillway.Event {
	now := time.Now()
	served := spillway.Event{Time: now, Policy: "shed", Outcome: spillway.OutcomeServed, Latency: time.Millisecond, Context: context.Background()}
	rejected := rejection(now)
	rejected.Context = context.Background()
	return map[string]spillway.Event{
		"served": served, "rejected": rejected,
		"attempt": {Time: now, Policy: "inflight", Outcome: spillway.OutcomeServed, Latency: time.Millisecond, Context: context.Background()},
	}
}

// TestAllocs: without a span that is recorded, counting allocates nothing.
func TestAllocs(t *testing.T) {
	o, _ := observer(t, spillotel.Config{})
	for name, e := range costs() {
		if n := testing.AllocsPerRun(1000, func() { o.Observe(e) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkObserve is the cost of one decision, with the SDK.
func BenchmarkObserve(b *testing.B) {
	for name, e := range costs() {
		b.Run(name, func(b *testing.B) {
			o, _ := observer(b, spillotel.Config{})
			b.ReportAllocs()
			for b.Loop() {
				o.Observe(e)
			}
		})
	}
}
