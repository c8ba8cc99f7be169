package drill

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A pool finishes as many calls at once as it has slots, and those whose callers
// have left wait no longer.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work, start := pool(), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), slotHold+ms)
		defer cancel()
		var (
			wg     sync.WaitGroup
			mu     sync.Mutex
			served = map[time.Duration]int{}
			left   int
		)
		for range 3*slots + 1 {
			wg.Go(func() {
				done := work(ctx)
				mu.Lock()
				defer mu.Unlock()
				if !done {
					left++
					return
				}
				served[time.Since(start)]++
			})
		}
		wg.Wait()
		if served[slotHold] != slots || served[2*slotHold] != slots || left != slots+1 {
			t.Errorf("served at %v, %d left; want %d after each %v and %d that left", served, left, slots, slotHold, slots+1)
		}
	})
}

func TestMixedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !(Backend{Kind: BackendMixed, Rounds: 10}).work()(t.Context()) || time.Since(start) != mixedWait {
			t.Errorf("took %v, want %v", time.Since(start), mixedWait)
		}
	})
}
