package egress

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// TestMaxRequestsByClass: with MaxInFlight of 24 and five times as much load, calls of the
// highest class get every slot that they can use, and the lowest class gets nothing.
func TestMaxRequestsByClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, service = 24, 20 * time.Millisecond
		c, err := New(Config{MaxInFlight: limit})
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		var offered, sent [spillway.Criticalities]int
		offer := func(calls int, count bool) {
			var all sync.WaitGroup
			for range calls {
				time.Sleep(time.Duration(random.ExpFloat64() * float64(service) / (5 * limit)))
				class := spillway.Sheddable + spillway.Criticality(random.IntN(spillway.Criticalities))
				takes := service/2 + time.Duration(random.Int64N(int64(service)))
				all.Go(func() {
					err := c.Do(spillway.WithCriticality(t.Context(), class), spillway.Call{}, func(context.Context, *Attempt) error {
						time.Sleep(takes)
						return nil
					})
					mu.Lock()
					defer mu.Unlock()
					if count {
						offered[class.Index()]++
						if err == nil {
							sent[class.Index()]++
						}
					}
				})
			}
			all.Wait()
		}
		offer(1000, false)
		offer(30_000, true)
		t.Logf("offered %v, sent %v", offered, sent)
		// A quarter of five times the limit is 30 for 24 places; of these Erlang's formula
		// has 26 % find none, if only the highest class calls.
		if share := float64(sent[3]) / float64(offered[3]); share < 0.7 {
			t.Errorf("CRITICAL_PLUS: %.3f", share)
		}
		if share := float64(sent[0]) / float64(offered[0]); share > 0.01 {
			t.Errorf("SHEDDABLE: %.3f", share)
		}
	})
}
