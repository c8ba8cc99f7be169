package egress_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/throttle"
)

func drops(c *egress.Client) uint64 { return c.Stats(time.Now()).InFlight.RejectedTotal }

// TestUpdateKeepsWhatWasLearnt: the throttle goes on with its statistics, and the
// budget with what was saved up and spent.
func TestUpdateKeepsWhatWasLearnt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		always := throttle.Config{Rand: func() float64 { return 0 }}
		client := must(t, egress.Config{ThrottleMode: spillway.ModeObserve}) // rejects nothing
		update := func(c egress.Config) {
			t.Helper()
			if err := client.Update(c); err != nil {
				t.Fatal(err)
			}
		}
		sent := 0
		for range 500 {
			_ = client.Do(t.Context(), spillway.Call{}, func(context.Context, *egress.Attempt) error {
				sent++
				return overloaded{}
			})
			update(egress.Config{ThrottleMode: spillway.ModeObserve})
		}
		if sent < 540 || sent > 500+150 {
			t.Errorf("%d attempts at 500 calls, want a retry for each ten", sent)
		}
		update(egress.Config{Throttle: always})
		if err := client.Do(t.Context(), spillway.Call{}, works); !errors.Is(err, spillway.ErrRejected) {
			t.Errorf("%v, want the rejection of a throttle that has seen failures only", err)
		}
		update(egress.Config{Throttle: always, ThrottleMode: spillway.ModeObserve})
		if err := client.Do(t.Context(), spillway.Call{}, works); err != nil {
			t.Errorf("the throttle observes, and rejects: %v", err)
		}
	})
}

// TestUpdateOfTheLimit: calls under way are counted under a new limit, and settle
// with it.
func TestUpdateOfTheLimit(t *testing.T) {
	client := must(t, egress.Config{MaxInFlight: 2})
	var held inflight.Hold
	hold := func(ctx context.Context, a *egress.Attempt) error {
		a.Hold(ctx, &held)
		return client.Update(egress.Config{MaxInFlight: 1})
	}
	if err := client.Do(t.Context(), spillway.Call{}, hold); err != nil {
		t.Fatal(err)
	}
	if err := client.Do(t.Context(), spillway.Call{}, works); !errors.Is(err, spillway.ErrRejected) || drops(client) != 1 {
		t.Errorf("%v with the one place taken", err)
	}
	if err := client.Update(egress.Config{MaxInFlight: 9, Throttle: throttle.Config{K: 1}}); err == nil || !strings.Contains(err.Error(), "K is 1") {
		t.Errorf("%v, want an error about K", err)
	}
	if err := client.Do(t.Context(), spillway.Call{}, works); !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("%v: an Update that failed has changed the limit", err)
	}
	held.End()
	if err := client.Do(t.Context(), spillway.Call{}, works); err != nil {
		t.Error(err)
	}
	if n := client.Stats(time.Now()).InFlight.InFlight; n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// TestUpdateOfAPool: an update applies to all clients, existing and future, or to none.
func TestUpdateOfAPool(t *testing.T) {
	pool, err := egress.NewPool(egress.Config{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	limits := func() (all []int) {
		for _, key := range []string{"a", "b"} {
			all = append(all, pool.For(key).Stats(time.Now()).InFlight.MaxInFlight)
		}
		return all
	}
	pool.For("a")
	if err := pool.Update(egress.Config{MaxInFlight: 7}); err != nil {
		t.Fatal(err)
	}
	if got := limits(); got[0] != 7 || got[1] != 7 {
		t.Errorf("limits %v, want 7 each", got)
	}
	if err := pool.Update(egress.Config{MaxInFlight: 8, InFlightMode: 9}); err == nil {
		t.Error("a wrong mode was taken")
	}
	if got := limits(); got[0] != 7 || got[1] != 7 {
		t.Errorf("limits %v after an Update that failed, want 7 each", got)
	}
}

// TestUpdateWhileInUse is for the race detector.
func TestUpdateWhileInUse(t *testing.T) {
	pool, err := egress.NewPool(egress.Config{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 200 {
				if i == 0 {
					if err := pool.Update(egress.Config{MaxInFlight: 10 + n}); err != nil {
						t.Error(err)
					}
					continue
				}
				if err := pool.For(strings.Repeat("x", (n+i)%4)).Do(t.Context(), spillway.Call{}, works); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for key, s := range pool.Stats(time.Now()) {
		if s.InFlight.InFlight != 0 || s.InFlight.MaxInFlight != 209 {
			t.Errorf("%q: %+v", key, s.InFlight)
		}
	}
}

// TestPoolForgetsItsFirst: the client that a pool finds at once is evicted as any other.
func TestPoolForgetsItsFirst(t *testing.T) {
	pool, err := egress.NewPool(egress.Config{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	first := pool.For("a")
	if pool.For("a") != first {
		t.Error("the pool has forgotten a client that it has room for")
	}
	second := pool.For("b")
	if pool.For("a") == first || pool.For("b") == second {
		t.Error("the pool keeps more than one client")
	}
}
