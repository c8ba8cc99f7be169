package spillrueidis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spilltest"
)

// A rig is a client of a cluster of two shards.
type rig struct{ *Client }

func (r rig) Held() (n int) {
	for _, s := range r.Stats(time.Now()) {
		n += s.InFlight.InFlight
	}
	return n
}

func (r rig) Close() error {
	end(r.Client)
	return nil
}

// reply is what a server says for the work of a fuse.
func reply(f *spilltest.Fuse) func(string, []string) string {
	return func(string, []string) string {
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
	for name, call := range map[string]func(context.Context, rig) error{
		"command": func(ctx context.Context, r rig) error {
			return r.Do(ctx, r.B().Get().Key(ofFirst).Build()).Error()
		},
		"one shard": func(ctx context.Context, r rig) error {
			return r.DoMulti(ctx, r.B().Get().Key(ofFirst).Build())[0].Error()
		},
		"two shards": func(ctx context.Context, r rig) error {
			all := r.DoMulti(ctx, r.B().Get().Key(ofFirst).Build(), r.B().Get().Key(ofSecond).Build())
			return errors.Join(all[0].Error(), all[1].Error())
		},
		"dedicated": func(ctx context.Context, r rig) error {
			c, release := r.Dedicate()
			defer release() // which Dedicated of rueidis does not do after a panic
			return c.Do(ctx, c.B().Get().Key(ofFirst).Build()).Error()
		},
	} {
		t.Run(name, func(t *testing.T) { panicsOf(t, call, name != "dedicated") })
	}
}

func panicsOf(t *testing.T, call func(context.Context, rig) error, retries bool) {
	t.Helper()
	points := spilltest.Calls(call, nil)
	points.Waiting.Do, points.Waiting.Not = nil, "a rejected command does not wait"
	points.Hedge.Do, points.Hedge.Not = nil, "commands are not hedged"
	if !retries {
		points.Retry.Do, points.Retry.Not = nil, "commands of one connection are not repeated"
	}
	points.Stream.Do = func(ctx context.Context, f *spilltest.Fuse, r rig) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		time.AfterFunc(time.Second, cancel)
		_ = r.Receive(ctx, r.B().Subscribe().Channel("c").Build(), func(rueidis.PubSubMessage) { f.Burn("message") })
		return nil
	}
	spilltest.TestPanics(t, func(t *testing.T, f *spilltest.Fuse) rig {
		_, client := cluster(t, f.Egress(egress.Config{}), reply(f))
		return rig{client}
	}, points)
}
