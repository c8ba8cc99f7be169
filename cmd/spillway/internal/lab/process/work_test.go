package process

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// A pool finishes as many calls at once as it has slots, and those whose callers
// have left wait no longer.
func TestPool(t *testing.T) {
	const hold = 20 * ms
	synctest.Test(t, func(t *testing.T) {
		work, start := Backend{Service: hold}.pool(), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), hold+ms)
		defer cancel()
		var (
			wg     sync.WaitGroup
			mu     sync.Mutex
			served = map[time.Duration]int{}
			left   int
		)
		for range 3*Slots + 1 {
			wg.Go(func() {
				_, done := work(ctx)
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
		if served[hold] != Slots || served[2*hold] != Slots || left != Slots+1 {
			t.Errorf("served at %v, %d left; want %d after each %v and %d that left", served, left, Slots, hold, Slots+1)
		}
	})
}

func TestMixedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if _, done := (Backend{Kind: KindMixed, Service: ms, Rounds: 10}).work()(t.Context()); !done || time.Since(start) != MixedWait {
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

// Of several tries the fastest counts: others were disturbed.
func TestCalibrate(t *testing.T) {
	took := []time.Duration{3 * ms, 500 * time.Microsecond, 2 * ms}
	n := 0
	try := func(int) time.Duration {
		n++
		return took[n%len(took)]
	}
	if got := calibrate(2*ms, try); got != 4_000_000 {
		t.Errorf("%d rounds for 2 ms, want 4 times the million that took 0.5 ms", got)
	}
}

// Twice the rounds take twice the time, so that the work of a call is the same
// however fast the machine is at that moment. Both are tried in turns: what
// disturbs one disturbs the other.
func TestBurnIsInProportion(t *testing.T) {
	one, two := time.Duration(1<<62), time.Duration(1<<62)
	for range 50 {
		one, two = min(one, timeBurn(200_000)), min(two, timeBurn(400_000))
	}
	if ratio := float64(two) / float64(one); ratio < 1.5 || ratio > 2.5 {
		t.Errorf("twice the rounds take %.2f times as long", ratio)
	}
}

// A call reports how much longer than calibrated its work took: if it was calibrated for half of the
// time, twice as much. All are tried in turns, with the same work beside them.
func TestSlowdown(t *testing.T) {
	const rounds, service = 400_000, time.Millisecond
	one, two, beside := math.Inf(1), math.Inf(1), time.Duration(1<<62)
	for range 50 {
		beside = min(beside, timeBurn(rounds/burnParts))
		one = min(one, Backend{Rounds: rounds, Service: service}.burn(rounds))
		two = min(two, Backend{Rounds: rounds, Service: service / 2}.burn(rounds))
	}
	if ratio := two / one; ratio < 1.5 || ratio > 2.5 {
		t.Errorf("calibrated for half of the time a call reports %.2f times as much", ratio)
	}
	if took := burnParts * beside.Seconds(); one*service.Seconds() < took/2 || one*service.Seconds() > 2*took {
		t.Errorf("a call reports %.2f times %v, and its work takes %.4f s", one, service, took)
	}
}

// BenchmarkSlowdown shows the slowdown that calls report whose rounds were calibrated on this machine,
// the smallest of 50. Band: 0.8 to 1.25.
func BenchmarkSlowdown(b *testing.B) {
	rounds := calibrate(time.Millisecond, timeBurn)
	got := 0.0
	for b.Loop() {
		got = math.Inf(1)
		for range 50 {
			got = min(got, Backend{Rounds: rounds, Service: time.Millisecond}.burn(rounds))
		}
	}
	b.ReportMetric(got, "of-calibrated")
}
