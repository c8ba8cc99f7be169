package egress_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spilltest"
)

// through makes calls through a Client.
func through(c *egress.Client) spilltest.Do {
	return func(ctx context.Context, work func(context.Context) error) error {
		return c.Do(ctx, spillway.Call{}, func(ctx context.Context, _ *egress.Attempt) error { return work(ctx) })
	}
}

func TestContract(t *testing.T) {
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		config := func(s spilltest.Setup) egress.Config {
			return egress.Config{MaxInFlight: s.Limit, InFlightMode: s.Mode, Observer: s.Observer}
		}
		client := must(t, config(s))
		return spilltest.Stack{
			Do:       through(client),
			InFlight: func() int { return client.Stats(time.Now()).InFlight.InFlight },
			Update:   func(s spilltest.Setup) error { return client.Update(config(s)) },
		}
	})
}

func TestContractOfRetries(t *testing.T) {
	spilltest.TestRetries(t, func(t *testing.T, s retry.Strategy) spilltest.Do {
		return through(must(t, egress.Config{Retry: s, ThrottleMode: spillway.ModeOff}))
	})
}
