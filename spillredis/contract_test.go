package spillredis

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spilltest"
)

// through makes calls as commands that pass the hook of a node, without a server.
func through(t *testing.T, c egress.Config) (spilltest.Do, *egress.Pool) {
	t.Helper()
	pool, err := egress.NewPool(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := &hook{pool: pool, address: "node:6379", redial: newRedialer(1)}
	return func(ctx context.Context, work func(context.Context) error) error {
		return h.ProcessHook(func(ctx context.Context, _ redis.Cmder) error { return work(ctx) })(ctx, redis.NewStatusCmd(ctx, "set", "k", "v"))
	}, pool
}

func TestContract(t *testing.T) {
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		config := func(s spilltest.Setup) egress.Config {
			return egress.Config{MaxInFlight: s.Limit, InFlightMode: s.Mode, Observer: s.Observer}
		}
		do, pool := through(t, config(s))
		stack := spilltest.Stack{
			Do: do,
			Bare: func(ctx context.Context, work func(context.Context) error) error {
				_ = redis.NewStatusCmd(ctx, "set", "k", "v")
				return work(ctx)
			},
			InFlight: func() (n int) {
				for _, node := range pool.Stats(time.Now()) {
					n += node.InFlight.InFlight
				}
				return n
			},
			Update: func(s spilltest.Setup) error { return pool.Update(config(s)) },
		}
		stack.Allocations.Served, stack.Allocations.Rejected = 3, 3 // funcs around work, and a mark in the context
		return stack
	})
}

func TestContractOfRetries(t *testing.T) {
	spilltest.TestRetries(t, func(t *testing.T, s retry.Strategy) spilltest.Do {
		do, _ := through(t, egress.Config{Retry: s, ThrottleMode: spillway.ModeOff})
		return func(ctx context.Context, work func(context.Context) error) error { return do(Idempotent(ctx), work) }
	})
}
