package egress_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/retry"
)

// After ten hedges that lost, only calls that are answered before their hedge is due pay for
// another one: a hundred of them for one. A call that is answered when its hedge is due pays for
// none.
func TestHedgesAreEarnedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 50 * time.Millisecond
		c, h := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: delay})
		warm(t, c, 20)
		for _, step := range []struct {
			calls int
			takes time.Duration
			sent  uint64
		}{{10, 2 * delay, 10}, {100, delay, 10}, {1, 2 * delay, 10}, {100, delay - 1, 10}, {1, 2 * delay, 11}} {
			for range step.calls {
				_, err := egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (int, error) {
					if a.Number == 0 {
						return 0, sleep(ctx, step.takes)
					}
					<-ctx.Done()
					return 0, ctx.Err()
				}, nil)
				if err != nil {
					t.Fatal(err)
				}
			}
			if s := h.Stats(); s.SentTotal != step.sent {
				t.Errorf("after %d calls of %v: %+v, want %d hedges", step.calls, step.takes, s, step.sent)
			}
		}
		checkIdle(t, c)
	})
}

// An Update keeps what was learnt of hedges, unless it changes when they are sent.
func TestUpdateKeepsHedges(t *testing.T) {
	c, h := hedging(t, egress.Config{}, retry.HedgeConfig{Percentile: 0.9})
	warm(t, c, 10)
	for config, keeps := range map[retry.HedgeConfig]bool{{Percentile: 0.9}: true, {Percentile: 0.9, Delay: time.Second}: false} {
		if err := c.Update(egress.Config{Hedge: retry.HedgeConfig{Percentile: 0.9}}); err != nil {
			t.Fatal(err)
		}
		warm(t, c, 10)
		if err := c.Update(egress.Config{Hedge: config}); err != nil {
			t.Fatal(err)
		}
		if known := h.Stats().Delay > 0; known != keeps {
			t.Errorf("after an Update to %+v the percentile is known: %v", config, known)
		}
	}
}
