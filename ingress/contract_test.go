package ingress_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spilltest"
)

func TestContract(t *testing.T) {
	contract(t, func(server *ingress.Server) spilltest.Do {
		return func(ctx context.Context, work func(context.Context) error) error {
			slot, rejection := server.Enter(ctx, spillway.Call{}, ratelimit.Caller{})
			if rejection.Rejected() {
				return rejection.Err
			}
			outcome := spillway.OutcomeFailed
			defer func() { slot.Done(outcome) }()
			err := work(ctx)
			if err == nil {
				outcome = spillway.OutcomeServed
			}
			return err
		}
	}, 0, 0)
}

// Work that is no request has the same contract. Its context takes three allocations;
// TestAllocations counts those of a rejection.
func TestContractOfWork(t *testing.T) {
	contract(t, func(server *ingress.Server) spilltest.Do {
		return func(ctx context.Context, work func(context.Context) error) error {
			_, err := server.Do(ctx, spillway.Call{}, work)
			return err
		}
	}, 3, -1)
}

func contract(t *testing.T, do func(*ingress.Server) spilltest.Do, served, rejected float64) {
	t.Helper()
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		config := func(s spilltest.Setup) ingress.Config {
			return ingress.Config{MaxInFlight: s.Limit, InFlightMode: s.Mode, Observer: s.Observer}
		}
		server, err := ingress.New(config(s))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		stack := spilltest.Stack{
			Do:       do(server),
			InFlight: func() int { return server.Stats(time.Now()).Concurrency.Shared.InFlight },
			Update:   func(s spilltest.Setup) error { return server.Update(config(s)) },
		}
		stack.Allocations.Served, stack.Allocations.Rejected = served, rejected
		return stack
	})
}
