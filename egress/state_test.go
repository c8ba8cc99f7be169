package egress_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/throttle"
)

// A change of state names the backend, also after an Update, and Stats has the state of each.
func TestPoolState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changed []throttle.StateChange
		c := egress.Config{Throttle: throttle.Config{OnStateChange: func(s throttle.StateChange) { changed = append(changed, s) }}}
		pool, err := egress.NewPool(c, 0)
		if err != nil {
			t.Fatal(err)
		}
		pool.For("good")
		pool.For("bad")
		if err := pool.Update(c); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			_ = pool.For("good").Do(t.Context(), spillway.Call{Key: "good"}, func(context.Context, *egress.Attempt) error { return nil })
			_ = pool.For("bad").Do(t.Context(), spillway.Call{Key: "bad"}, func(context.Context, *egress.Attempt) error { return overloaded{} })
			time.Sleep(10 * time.Millisecond)
		}
		if len(changed) == 0 {
			t.Fatal("no change was reported")
		}
		for _, s := range changed {
			if s.Backend != "bad" {
				t.Errorf("%+v, want changes of the backend that fails", s)
			}
		}
		stats, class := pool.Stats(time.Now()), spillway.Critical.Index()
		if good, bad := stats["good"].Throttle[class].State, stats["bad"].Throttle[class].State; good != throttle.StateClosed || bad != throttle.StateProbing {
			t.Errorf("good is %v, bad is %v", good, bad)
		}
	})
}
