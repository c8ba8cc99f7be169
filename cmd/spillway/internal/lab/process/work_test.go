package process

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// A pool finishes as many calls at once as it has slots, and those whose callers
// have left wait no longer.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work, start := Backend{}.pool(), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), SlotHold+ms)
		defer cancel()
		var (
			wg     sync.WaitGroup
			mu     sync.Mutex
			served = map[time.Duration]int{}
			left   int
		)
		for range 3*Slots + 1 {
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
		if served[SlotHold] != Slots || served[2*SlotHold] != Slots || left != Slots+1 {
			t.Errorf("served at %v, %d left; want %d after each %v and %d that left", served, left, Slots, SlotHold, Slots+1)
		}
	})
}

func TestMixedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !(Backend{Kind: KindMixed, Rounds: 10}).work()(t.Context()) || time.Since(start) != MixedWait {
			t.Errorf("took %v, want %v", time.Since(start), MixedWait)
		}
	})
}

// Only a backend that is to degrade answers cheaper, and only where the request says so.
func TestDegradedWork(t *testing.T) {
	low := spillway.WithDegradation(t.Context(), spillway.DegradationLow)
	for _, row := range []struct {
		ctx     context.Context
		degrade bool
		want    int
	}{{t.Context(), true, 300}, {low, true, 100}, {low, false, 300}} {
		if got := (Backend{Rounds: 300, Degrade: row.degrade}).rounds(row.ctx); got != row.want {
			t.Errorf("%v, degrade %v: %d rounds, want %d", spillway.DegradationFrom(row.ctx), row.degrade, got, row.want)
		}
	}
}
