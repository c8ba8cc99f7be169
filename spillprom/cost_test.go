package spillprom

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/telemetry"
)

func costs() map[string]func(i int) spillway.Event {
	now := time.Now()
	names := make([]string, 1<<16)
	for i := range names {
		names[i] = fmt.Sprint("/carts/", i)
	}
	full := &spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonQueueFull}
	served := spillway.Event{Time: now, Policy: "shed", Outcome: spillway.OutcomeServed, Latency: time.Millisecond, Call: spillway.Call{Key: "GET /"}, Context: context.Background()}
	rejected := spillway.Rejection(full)
	rejected.Time, rejected.Policy, rejected.Call = now, "shed", spillway.Call{Key: "GET /", Customer: "shop"}
	return map[string]func(int) spillway.Event{
		"served":   func(int) spillway.Event { return served },
		"rejected": func(int) spillway.Event { return rejected },
		"rejected, all keys new": func(i int) spillway.Event {
			e := rejected
			e.Call.Key, e.Call.Customer = names[i%len(names)], names[i%len(names)]
			return e
		},
	}
}

func TestAllocs(t *testing.T) {
	x := collector(t, Config{Exemplar: func(context.Context) string { return "id" }})
	for name, event := range costs() {
		i := 0
		if n := testing.AllocsPerRun(1000, func() { i++; x.Observe(event(i)) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkObserve is the cost of one decision.
func BenchmarkObserve(b *testing.B) {
	for name, event := range costs() {
		b.Run(name, func(b *testing.B) {
			x := collector(b, Config{})
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				x.Observe(event(i))
			}
		})
	}
}

func BenchmarkCollect(b *testing.B) {
	x := collector(b, Config{})
	x.AddServer("main", server{someLevels()})
	everything(x, telemetry.Policies[:]...)
	for b.Loop() {
		gather(b, x)
	}
}
