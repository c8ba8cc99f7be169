package spilltest_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spilltest"
	"github.com/seed90641741/spillway/throttle"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// overloaded returns a throttle that rejects.
func overloaded() *throttle.Throttle {
	t := must(throttle.New(throttle.Config{Rand: func() float64 { return 0 }}))
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	for range 2000 {
		if ticket, err := t.Admit(now, spillway.Call{}); err == nil {
			ticket.Settle(now, spillway.OutcomeOverloaded)
		}
		now = now.Add(time.Millisecond)
	}
	return t
}

func TestGates(t *testing.T) {
	for name, open := range map[string]func() spillway.Gate{
		"inflight":    func() spillway.Gate { return must(inflight.New(inflight.Config{MaxRequests: 5})) },
		"ratelimit":   func() spillway.Gate { return must(ratelimit.New(ratelimit.Config{Rate: 5})) },
		"throttle":    func() spillway.Gate { return overloaded() },
		"concurrency": func() spillway.Gate { return must(concurrency.New(concurrency.Config{Max: 5, Fixed: true})) },
		"quota": func() spillway.Gate {
			local := must(quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 50}}))
			return must(quota.New(quota.Config{Allocator: local}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			spilltest.TestGate(t, func(*testing.T) spillway.Gate { return open() })
		})
	}
}

func TestEgress(t *testing.T) { spilltest.TestStack(t, clientStack) }

func TestIngress(t *testing.T) {
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		config := func(s spilltest.Setup) ingress.Config {
			return ingress.Config{MaxInFlight: s.Limit, InFlightMode: s.Mode, Observer: s.Observer}
		}
		server := must(ingress.New(config(s)))
		t.Cleanup(func() { _ = server.Close() })
		return spilltest.Stack{
			Do: func(ctx context.Context, work func(context.Context) error) error {
				passage, refusal := server.Enter(ctx, spillway.Call{}, ratelimit.Caller{})
				if refusal.Rejected() {
					return refusal.Err
				}
				outcome := spillway.OutcomeFailed
				defer func() { passage.Done(outcome) }()
				err := work(ctx)
				if err == nil {
					outcome = spillway.OutcomeServed
				}
				return err
			},
			InFlight: func() int { return server.Stats(time.Now()).Concurrency.Shared.InFlight },
			Update:   func(s spilltest.Setup) error { return server.Update(config(s)) },
		}
	})
}
