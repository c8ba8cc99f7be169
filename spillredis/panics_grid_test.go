package spillredis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spilltest"
)

// A rig is a client whose hooks of the user are in front of and behind ours.
type rig struct {
	*redis.Client
	pool *egress.Pool
}

func (r rig) Held() (n int) {
	for _, node := range r.pool.Stats(time.Now()) {
		n += node.InFlight.InFlight
	}
	return n
}

// burning is a hook of the user.
type burning struct {
	f    *spilltest.Fuse
	name string
}

func (b burning) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b burning) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		b.f.Burn(b.name)
		defer b.f.Burn(b.name)
		return next(ctx, cmd)
	}
}

func (b burning) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		b.f.Burn(b.name)
		defer b.f.Burn(b.name)
		return next(ctx, cmds)
	}
}

// reply is what a server says for the work of a fuse.
func reply(f *spilltest.Fuse) func([]string) string {
	return func([]string) string {
		var err error
		_ = f.Try(func() error { err = f.Work(context.Background()); return nil })
		switch {
		case errors.Is(err, spilltest.ErrBusy):
			return "-LOADING Redis is loading the dataset in memory\r\n"
		case err != nil:
			return "-ERR failed\r\n"
		}
		return "$1\r\nv\r\n"
	}
}

func testPanics(t *testing.T) {
	t.Run("command", func(t *testing.T) {
		panicsOf(t, func(ctx context.Context, r rig) error { return r.Get(ctx, "k").Err() })
	})
	t.Run("pipeline", func(t *testing.T) {
		panicsOf(t, func(ctx context.Context, r rig) error {
			_, err := r.Pipelined(ctx, func(p redis.Pipeliner) error { p.Get(ctx, "k"); return nil })
			return err
		})
	})
}

func panicsOf(t *testing.T, call func(context.Context, rig) error) {
	t.Helper()
	points := spilltest.Calls(call, nil)
	points.Waiting.Do, points.Waiting.Not = nil, "a rejected command does not wait"
	points.Hedge.Do, points.Hedge.Not = nil, "commands are not hedged"
	points.Stream.Not = "redis has no streams of messages; a subscription passes no hook"
	spilltest.TestPanics(t, func(t *testing.T, f *spilltest.Fuse) rig {
		_, client, pool := start(t, f.Egress(egress.Config{}), reply(f))
		client.Options().ContextTimeoutEnabled = true // else a call does not end with its context
		client.AddHook(burning{f, "Hook"})
		return rig{client, pool}
	}, points)
}
