package egress_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/retry"
)

// hedging returns a Client that hedges, and its statistics.
func hedging(t *testing.T, c egress.Config, h retry.HedgeConfig) (*egress.Client, hedged) {
	t.Helper()
	c.Hedge = h
	client := must(t, c)
	return client, hedged{client}
}

type hedged struct{ client *egress.Client }

func (h hedged) Stats() retry.HedgeStats { return h.client.Stats(time.Now()).Hedge }

var read = spillway.Call{Key: "read", Kind: spillway.KindRead}

// sleep waits as a backend would that ends with its client.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// warm makes calls that earn what n hedges cost.
func warm(t *testing.T, c *egress.Client, n int) {
	t.Helper()
	for range 10 * n {
		if _, err := egress.Hedged(t.Context(), c, read, nil, func(context.Context, *egress.Attempt) (int, error) { return 0, nil }, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func checkIdle(t *testing.T, c *egress.Client) {
	t.Helper()
	synctest.Wait()
	if n := c.Stats(time.Now()).InFlight.InFlight; n != 0 {
		t.Errorf("%d in flight at the end", n)
	}
}

// A call to a slow task is answered by the hedge, and the first attempt is canceled.
func TestHedgeWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
		warm(t, c, 1)
		start := time.Now()
		var canceled atomic.Bool
		v, err := egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (int, error) {
			if a.Number == 0 {
				err := sleep(ctx, time.Second)
				canceled.Store(err != nil)
				return 0, err
			}
			return a.Number, sleep(ctx, 10*time.Millisecond)
		}, nil)
		if v != 1 || err != nil || time.Since(start) != 60*time.Millisecond || !canceled.Load() {
			t.Errorf("%d, %v after %v, first attempt canceled: %v; want the hedge after 60ms", v, err, time.Since(start), canceled.Load())
		}
		if s := h.Stats(); s.SentTotal != 1 || s.WonTotal != 1 {
			t.Errorf("%+v", s)
		}
		checkIdle(t, c)
	})
}

// A hedge that loses is canceled, informs no throttle, and its result is discarded.
func TestHedgeLoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
		warm(t, c, 1)
		before := c.Stats(time.Now()).Throttle[spillway.Critical.Index()]
		discarded := make(chan int, 1)
		v, err := egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (int, error) {
			if a.Number == 0 {
				return 7, sleep(ctx, 100*time.Millisecond)
			}
			<-ctx.Done() // and succeeds all the same
			return 8, nil
		}, func(v int, _ error) { discarded <- v })
		if v != 7 || err != nil {
			t.Errorf("%d, %v, want the answer of the first attempt", v, err)
		}
		if d := <-discarded; d != 8 {
			t.Errorf("discarded %d", d)
		}
		after := c.Stats(time.Now()).Throttle[spillway.Critical.Index()]
		if after.Accepts != before.Accepts+1 || after.Requests != before.Requests+1 {
			t.Errorf("the throttle counted %v of %v, want one call", after.Accepts-before.Accepts, after.Requests-before.Requests)
		}
		if s := h.Stats(); s.SentTotal != 1 || s.WonTotal != 0 {
			t.Errorf("%+v", s)
		}
		checkIdle(t, c)
	})
}

// If the first attempt fails while its hedge is under way, the hedge may still answer. If both
// fail, they count as two of the three attempts of the call.
func TestHedgeAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
		warm(t, c, 2)
		v, err := egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (int, error) {
			_ = sleep(ctx, 100*time.Millisecond)
			if a.Number == 0 {
				return 0, errBackend
			}
			return 9, nil
		}, nil)
		if v != 9 || err != nil {
			t.Errorf("%d, %v, want the answer of the hedge", v, err)
		}
		var sent atomic.Int32
		_, err = egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (int, error) {
			sent.Add(1)
			_ = sleep(ctx, 100*time.Millisecond)
			return 0, errBackend
		}, nil)
		stopped, ok := errors.AsType[*retry.Error](err)
		if !ok || stopped.Attempts != 3 || sent.Load() != 3 {
			t.Errorf("%v after %d attempts, want 3", err, sent.Load())
		}
		checkIdle(t, c)
	})
}

// What must not be hedged is not: writes, retries, calls for a request that is itself a retry or
// a hedge, calls that the throttle limits, and calls for which there is no place in flight.
func TestHedgeNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, a *egress.Attempt) (int, error) {
			return a.Number, sleep(ctx, time.Second)
		}
		repeated := context.WithValue(t.Context(), final.Key{}, &final.Mark{Repeated: true})
		mark := new(final.Mark)
		mark.Set()
		marked := context.WithValue(t.Context(), final.Key{}, mark)
		for name, row := range map[string]struct {
			config egress.Config
			ctx    context.Context
			call   spillway.Call
		}{
			"write":    {egress.Config{}, t.Context(), spillway.Call{Kind: spillway.KindWrite, Idempotent: true}},
			"unknown":  {egress.Config{}, t.Context(), spillway.Call{Idempotent: true}},
			"repeated": {egress.Config{}, repeated, read},
			"place":    {egress.Config{MaxInFlight: 1}, t.Context(), read},
			"final":    {egress.Config{}, marked, read},
		} {
			c, h := hedging(t, row.config, retry.HedgeConfig{Delay: 50 * time.Millisecond})
			warm(t, c, 10)
			if _, err := egress.Hedged(row.ctx, c, row.call, nil, slow, nil); err != nil || h.Stats().SentTotal != 0 {
				t.Errorf("%s: %v, %+v", name, err, h.Stats())
			}
			checkIdle(t, c)
		}
		c, h := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
		for range 200 {
			_, _ = egress.Hedged(t.Context(), c, read, nil, func(context.Context, *egress.Attempt) (int, error) { return 0, overloaded{} }, nil)
		}
		for range 1000 {
			_, _ = egress.Hedged(t.Context(), c, read, nil, slow, nil)
			if c.Stats(time.Now()).Throttle[spillway.Critical.Index()].Probability == 0 {
				break
			}
		}
		if s := h.Stats(); s.SentTotal > 1 {
			t.Errorf("while the throttle limits calls: %+v", s)
		}
		checkIdle(t, c)
	})
}

// One call in fifty is slow. With hedges after the 95th percentile the 99th falls by a factor
// of ten or more, for about one request in twenty more.
func TestHedgeTail(t *testing.T) {
	for name, hedged := range map[string]bool{"without": false, "with": true} {
		synctest.Test(t, func(t *testing.T) {
			c, h := hedging(t, egress.Config{}, retry.HedgeConfig{Percentile: 0.95})
			random := rand.New(rand.NewPCG(1, 2))
			var mu sync.Mutex
			var sent int
			send := func(ctx context.Context, _ *egress.Attempt) (int, error) {
				mu.Lock()
				sent++
				d := 5*time.Millisecond + time.Duration(random.Float64()*float64(5*time.Millisecond))
				if random.IntN(50) == 0 {
					d = time.Second
				}
				mu.Unlock()
				return 0, sleep(ctx, d)
			}
			const calls = 4000
			var took []time.Duration
			for i := range calls {
				start := time.Now()
				var err error
				if hedged {
					_, err = egress.Hedged(t.Context(), c, read, nil, send, nil)
				} else {
					_, err = send(t.Context(), nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				if i >= calls/2 {
					took = append(took, time.Since(start))
				}
			}
			slices.Sort(took)
			p99, more := took[len(took)*99/100], float64(sent)/calls-1
			t.Logf("%s hedges: p99 %v, %.1f %% more requests, %+v", name, p99, 100*more, h.Stats())
			if !hedged && p99 != time.Second || hedged && (p99 > 100*time.Millisecond || more > 0.1) {
				t.Errorf("%s hedges: p99 %v, %.1f %% more requests", name, p99, 100*more)
			}
			checkIdle(t, c)
		})
	}
}

// An overloaded server that rejects nothing: one queue, and more calls than it serves. Every
// call is slower than the delay, and a hedge only waits behind the call that it doubles. Hedges
// add 1 % of load at most, after the first ten.
func TestHedgeOverload(t *testing.T) {
	for name, config := range map[string]retry.HedgeConfig{"delay": {Delay: 20 * time.Millisecond}, "percentile": {Percentile: 0.95}} {
		synctest.Test(t, func(t *testing.T) {
			strategy, err := retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}, MaxAttempts: 1})
			if err != nil {
				t.Fatal(err)
			}
			c, h := hedging(t, egress.Config{Retry: strategy, MaxInFlight: -1, ThrottleMode: spillway.ModeOff}, config)
			worker := make(chan struct{}, 1)
			var sent, served atomic.Int32
			send := func(ctx context.Context, _ *egress.Attempt) (int, error) {
				sent.Add(1)
				select {
				case worker <- struct{}{}: // in the order of arrival
				case <-ctx.Done():
					return 0, ctx.Err()
				}
				time.Sleep(10 * time.Millisecond) // the server does not notice that its client has left
				<-worker
				return int(served.Add(1)), ctx.Err()
			}
			var all sync.WaitGroup
			const calls = 4000
			for range calls { // 200 per second, twice what is served
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_, _ = egress.Hedged(ctx, c, read, nil, send, nil)
				})
				time.Sleep(5 * time.Millisecond)
			}
			all.Wait()
			synctest.Wait()
			t.Logf("%s: %d calls sent %d requests, %d served: %+v", name, calls, sent.Load(), served.Load(), h.Stats())
			if more := sent.Load() - calls; more > calls/100+15 {
				t.Errorf("%s: hedges added %d requests to %d calls of an overloaded server", name, more, calls)
			}
			checkIdle(t, c)
		})
	}
}

// Three layers that all hedge, above a backend where every call is slow: hedges of the layers
// add up to three times 10 %, and do not multiply.
func TestHedgeLayers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bottom atomic.Int32
		var layer func(depth int) func(context.Context) error
		layer = func(depth int) func(context.Context) error {
			if depth == 0 {
				return func(ctx context.Context) error {
					if bottom.Add(1)%2 == 0 { // so that hedges win
						return nil
					}
					return sleep(ctx, 100*time.Millisecond)
				}
			}
			next := layer(depth - 1)
			c, _ := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: 10 * time.Millisecond})
			return func(ctx context.Context) error {
				_, err := egress.Hedged(ctx, c, read, nil, func(ctx context.Context, a *egress.Attempt) (int, error) {
					// as a server marks the request that it serves
					return 0, next(context.WithValue(ctx, final.Key{}, &final.Mark{Repeated: a.Number > 0 || repeats(ctx)}))
				}, nil)
				return err
			}
		}
		top := layer(3)
		const calls = 2000
		for range calls {
			if err := top(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%d calls, %d requests at the bottom", calls, bottom.Load())
		if n := bottom.Load(); n > calls*13/10 || n == calls {
			t.Errorf("%d calls of three layers that hedge are %d requests, want at most 30 %% more", calls, n)
		}
	})
}

func repeats(ctx context.Context) bool {
	m := final.Of(ctx)
	return m != nil && m.Repeated
}

// "Don't retry" of the hedge counts.
func TestHedgeDontRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
		warm(t, c, 1)
		var sent atomic.Int32
		_, err := egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (int, error) {
			sent.Add(1)
			_ = sleep(ctx, 100*time.Millisecond)
			if a.Number == 1 {
				return 0, finalError{}
			}
			return 0, errBackend
		}, nil)
		if !fault.Of(err).DontRetry || sent.Load() != 2 {
			t.Errorf("%v after %d attempts, want the hedge's answer to be final", err, sent.Load())
		}
		checkIdle(t, c)
	})
}

type finalError struct{}

func (finalError) Error() string          { return "overloaded; don't retry" }
func (finalError) Failure() fault.Failure { return fault.Failure{Overload: true, DontRetry: true} }

// A hedge and the first attempt succeed at the same time: the answer that is returned has a
// context that lives, and the other one is discarded.
func TestHedgeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			c, h := hedging(t, egress.Config{}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
			warm(t, c, 1)
			type result struct {
				ctx   context.Context
				place *inflight.Hold
			}
			var discarded atomic.Int32
			v, err := egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (result, error) {
				<-time.After(100*time.Millisecond - time.Duration(a.Number)*50*time.Millisecond)
				r := result{ctx, new(inflight.Hold)}
				a.Hold(ctx, r.place)
				return r, nil // although it may be canceled
			}, func(r result, err error) {
				if err != nil {
					t.Error(err)
				}
				r.place.End()
				discarded.Add(1)
			})
			synctest.Wait()
			if err != nil || v.ctx.Err() != nil || discarded.Load() != 1 || h.Stats().SentTotal != 1 {
				t.Fatalf("%v, context %v, %d discarded, %+v", err, v.ctx.Err(), discarded.Load(), h.Stats())
			}
			v.place.End()
			if v.ctx.Err() == nil {
				t.Error("the context lives on after its place was given back")
			}
			checkIdle(t, c)
		}
	})
}

// 10,000 calls at once, all of them slow: ten hedges at most, as one of the budgets has 10 tokens.
func TestHedgeCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := hedging(t, egress.Config{MaxInFlight: -1}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
		var all sync.WaitGroup
		for range 10_000 {
			all.Go(func() {
				_, _ = egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, _ *egress.Attempt) (int, error) {
					return 0, sleep(ctx, time.Second)
				}, nil)
			})
		}
		all.Wait()
		if s := h.Stats(); s.SentTotal == 0 || s.SentTotal > 10 || s.SentTotal+s.RejectedTotal != 10_000 {
			t.Errorf("%+v, want at most 10 hedges", s)
		}
		checkIdle(t, c)
	})
}

// Observers see each hedge once, apart from the call: one that wins, one that loses, and one that
// no budget pays for.
func TestHedgeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []spillway.Event
		c, _ := hedging(t, egress.Config{Observer: spillway.ObserverFunc(func(e spillway.Event) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, e)
		})}, retry.HedgeConfig{Delay: 50 * time.Millisecond})
		take := func() (hedges []spillway.Event, others int) {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for _, e := range seen {
				if e.Policy == "hedge" {
					hedges = append(hedges, e)
				} else {
					others++
				}
			}
			seen = nil
			return hedges, others
		}
		slow := func(first, second time.Duration) {
			_, _ = egress.Hedged(t.Context(), c, read, nil, func(ctx context.Context, a *egress.Attempt) (int, error) {
				return 0, sleep(ctx, []time.Duration{first, second}[a.Number])
			}, nil)
		}
		warm(t, c, 2)
		if hedges, others := take(); len(hedges) != 0 || others != 60 {
			t.Errorf("without hedges: %v and %d others", hedges, others)
		}
		slow(time.Second, 10*time.Millisecond)
		if hedges, others := take(); others != 3 || len(hedges) != 1 || hedges[0].Outcome != spillway.OutcomeServed || hedges[0].Latency != 10*time.Millisecond ||
			hedges[0].Call.Attempt != 1 || hedges[0].Call.Key != "read" || hedges[0].Context == nil {
			t.Errorf("one that wins: %+v and %d others", hedges, others)
		}
		slow(100*time.Millisecond, time.Second)
		if hedges, others := take(); others != 3 || len(hedges) != 1 || hedges[0].Outcome != spillway.OutcomeAbandoned || hedges[0].Rejected {
			t.Errorf("one that loses: %+v and %d others", hedges, others)
		}
		for range 50 { // more than the budget has
			slow(100*time.Millisecond, time.Second)
		}
		hedges, others := take()
		rejected := 0
		for _, e := range hedges {
			if e.Rejected {
				rejected++
			}
		}
		if others != 150 || len(hedges) != 50 || rejected < 30 {
			t.Errorf("%d events, %d rejected, %d others", len(hedges), rejected, others)
		}
		checkIdle(t, c)
	})
}

// A call that a retry has saved says so: its event has the number of its retries.
func TestEventHasRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []int16
		c := must(t, egress.Config{Observer: spillway.ObserverFunc(func(e spillway.Event) {
			if e.Policy == "retry" {
				seen = append(seen, e.Call.Attempt)
			}
		})})
		for fails := range 4 { // of three attempts
			for range 100 { // which pay for the retries
				_ = c.Do(t.Context(), read, works)
			}
			seen = nil
			left := fails
			err := c.Do(t.Context(), read, func(context.Context, *egress.Attempt) error {
				if left--; left >= 0 {
					return overloaded{}
				}
				return nil
			})
			if want := int16(min(fails, 2)); (err != nil) != (fails == 3) || len(seen) != 1 || seen[0] != want {
				t.Errorf("after %d failures: %v, retries %v, want %d", fails, err, seen, want)
			}
		}
	})
}
