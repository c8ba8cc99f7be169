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

// A rig makes calls to a backend in this process.
type rig struct {
	*egress.Client
	*spilltest.Fuse
}

func (r rig) Held() int    { return r.Stats(time.Now()).InFlight.InFlight }
func (r rig) Close() error { return nil }
func (r rig) Route() string {
	r.Burn("Route")
	return ""
}

func (r rig) call(ctx context.Context) error {
	_, err := egress.Hedged(ctx, r.Client, read, r, func(ctx context.Context, _ *egress.Attempt) (int, error) { return 0, r.Work(ctx) },
		func(int, error) { r.Burn("discard") })
	return err
}

func TestPanics(t *testing.T) {
	points := spilltest.Calls(func(ctx context.Context, r rig) error { return r.call(ctx) }, nil)
	points.Waiting.Do, points.Waiting.Not = nil, "a Client has no queue"
	points.Stream.Not = "a Client knows calls only"
	points.Unseen = map[string]string{"race[...]).fire": "it fires after the call has its answer"}
	spilltest.TestPanics(t, func(t *testing.T, f *spilltest.Fuse) rig {
		var c egress.Config
		if f.Point == "Hedge" {
			c.Hedge = retry.HedgeConfig{Delay: 50 * time.Millisecond}
		}
		r := rig{must(t, f.Egress(c)), f}
		for range 20 { // which pay for a hedge
			_ = r.call(t.Context())
		}
		return r
	}, points)
}

var _ spillway.Observer = (*spilltest.Fuse)(nil)
