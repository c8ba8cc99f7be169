package egress_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
)

// A hedge that panics because it was canceled has lost already: the call has its answer, and must not look at what the other
// goroutine writes by now. The race detector sees whether it does. The next call gets the panic, and the one after that does not. The same
// is true of what discards the answer of a hedge that has lost.
func TestHedgePanicsTooLate(t *testing.T) {
	for _, late := range []string{"hedge", "discard"} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
			warm(t, c, 1)
			call := func() (v int, panicked any, err error) {
				defer func() { panicked = recover() }()
				v, err = egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (int, error) {
					if !a.IsHedge() {
						return 7, sleep(ctx, 100*time.Millisecond)
					}
					<-ctx.Done()
					if late == "hedge" {
						panic(late) // as code of the user does
					}
					return 8, nil
				}, func(v int, _ error) {
					if v == 8 {
						panic(late) // as code of the user does
					}
				})
				return v, nil, err
			}
			for i, want := range []any{nil, late, nil} {
				if v, panicked, err := call(); panicked != want || want == nil && (v != 7 || err != nil) {
					t.Errorf("call %d, %s: %d, %v, panics with %v, want %v", i, late, v, err, panicked, want)
				}
				synctest.Wait()
			}
			checkIdle(t, c)
		})
	}
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

// An answer that nobody gets is discarded, and its place is given back: the first attempt panics when its hedge has
// won, or an observer panics about either of them.
func TestPanicAfterTheAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		policy  string // about which the observer panics
		outcome spillway.Outcome
		panics  bool // the first attempt
		slow    bool
	}{
		"first attempt":              {"", 0, true, true},
		"observer of the hedge":      {"hedge", spillway.OutcomeServed, false, true},
		"observer of the throttle":   {"throttle", spillway.OutcomeServed, false, true},
		"observer of the first":      {"throttle", spillway.OutcomeServed, false, false},
		"observer of the hedge lost": {"hedge", spillway.OutcomeAbandoned, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var armed atomic.Bool
				var made, freed atomic.Int32
				c, _ := hedging(t, egress.Config{Observer: spillway.ObserverFunc(func(e spillway.Event) {
					if armed.Load() && e.Policy == row.policy && e.Outcome == row.outcome {
						panic("observer")
					}
				})}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
				warm(t, c, 10)
				armed.Store(true)
				for range 10 {
					func() {
						defer func() { _ = recover() }()
						_, _ = egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (*inflight.Hold, error) {
							takes := 60 * time.Millisecond
							if row.slow && !a.IsHedge() {
								takes = time.Second
							}
							if err := sleep(ctx, takes); err != nil {
								if row.panics {
									panic("send")
								}
								return nil, err
							}
							place := new(inflight.Hold)
							a.Hold(context.WithoutCancel(ctx), place)
							made.Add(1)
							return place, nil
						}, func(h *inflight.Hold, _ error) {
							if h != nil {
								freed.Add(1)
								h.End()
							}
						})
						t.Error("it does not panic")
					}()
				}
				if checkIdle(t, c); made.Load() == 0 || made.Load() != freed.Load() {
					t.Errorf("%d answers, %d of them discarded", made.Load(), freed.Load())
				}
			})
		})
	}
}

// panickyBudget panics when it is to pay.
type panickyBudget struct{ armed atomic.Bool }

func (b *panickyBudget) Withdraw(time.Time, string, float64) (left, capacity float64, ok bool) {
	if b.armed.Load() {
		panic("budget")
	}
	return 1, 1, true
}

func (b *panickyBudget) Deposit(string, float64) {}

// A hedge is paid for, and its late answer discarded, in a goroutine of the race. A budget that panics there does so in the
// goroutine of the call. A func that discards ends no process.
func TestHedgeCallbacksPanic(t *testing.T) {
	t.Run("budget", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := new(panickyBudget)
			c, _ := hedging(t, egress.Config{Retry: mustStrategy(retry.BudgetedConfig{Budget: b})}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
			warm(t, c, 1)
			b.armed.Store(true)
			func() {
				defer func() {
					if got := recover(); got != "budget" {
						t.Errorf("recovered %v", got)
					}
				}()
				_, _ = egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, _ *egress.Attempt) (int, error) {
					return 0, sleep(ctx, time.Second)
				}, nil)
			}()
			checkIdle(t, c)
		})
	})
	t.Run("discard", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, _ := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
			warm(t, c, 1)
			discarded := false
			v, err := egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (int, error) {
				if a.IsHedge() {
					<-ctx.Done()
				}
				return 7, sleep(context.WithoutCancel(ctx), 100*time.Millisecond)
			}, func(int, error) {
				discarded = true
				panic("discard")
			})
			if v != 7 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
			time.Sleep(time.Second)
			if checkIdle(t, c); !discarded {
				t.Error("there was no hedge")
			}
		})
	})
}

// A hedged write is on request only.
func TestHedgedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: 50 * time.Millisecond, Writes: true})
		warm(t, c, 1)
		for i, call := range []spillway.Call{{Kind: spillway.KindWrite}, {Kind: spillway.KindWrite, Idempotent: true}} {
			_, err := egress.Hedged(t.Context(), c, call, nil, func(ctx context.Context, _ *egress.Attempt) (int, error) {
				return 0, sleep(ctx, time.Second)
			}, nil)
			if n := h.Stats().SentTotal; err != nil || n != uint64(i) {
				t.Errorf("%+v: %v, %d hedges", call, err, n)
			}
		}
	})
}
