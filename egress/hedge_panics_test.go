package egress_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/retry"
)

// A hedge that panics because it was canceled has lost already: the call has its answer, and must not look at what the other
// goroutine writes by now. The race detector sees whether it does.
func TestHedgePanicsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
		warm(t, c, 1)
		var panicked atomic.Bool
		v, err := egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (int, error) {
			if a.IsHedge() {
				<-ctx.Done()
				panicked.Store(true)
				panic("hedge")
			}
			return 7, sleep(ctx, 100*time.Millisecond)
		}, nil)
		if v != 7 || err != nil {
			t.Errorf("%d, %v, want the answer of the first attempt", v, err)
		}
		if checkIdle(t, c); !panicked.Load() {
			t.Error("there was no hedge")
		}
	})
}

// A hedge that panics does so in the goroutine of the call, and gives everything back.
func TestHedgePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
		warm(t, c, 1)
		func() {
			defer func() {
				if got := recover(); got != "hedge" {
					t.Errorf("recovered %v", got)
				}
			}()
			_, _ = egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (int, error) {
				if a.IsHedge() {
					panic("hedge")
				}
				return 0, sleep(ctx, time.Second)
			}, nil)
		}()
		checkIdle(t, c)
	})
}

// An observer that panics about a hedge that no budget pays for does so in the goroutine of the call, where it can be caught.
func TestHedgeObserverPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := hedging(t, egress.Config{Observer: spillway.ObserverFunc(func(e spillway.Event) {
			if e.Policy == "hedge" && e.Rejected {
				panic("observer")
			}
		})}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
		warm(t, c, 2)
		caught := 0
		for range 50 { // more than the budget has
			func() {
				defer func() {
					switch got := recover(); got {
					case nil:
					case "observer":
						caught++
					default:
						t.Errorf("recovered %v", got)
					}
				}()
				_, _ = egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, _ *egress.Attempt) (int, error) {
					return 0, sleep(ctx, 100*time.Millisecond)
				}, nil)
			}()
		}
		if caught == 0 {
			t.Error("a budget paid for every hedge")
		}
		checkIdle(t, c)
	})
}
