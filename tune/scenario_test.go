package tune_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/thorough"
	"github.com/seed90641741/spillway/tune"
)

// Half as much again comes as a backend can do. Its capacity halves, comes back, doubles, and comes back. Within
// ten seconds the limit is where it should be, and stays there; and what is answered in
// time is nine tenths of the capacity of the moment, the ten seconds included.
func TestLimitFollowsCapacity(t *testing.T) {
	for _, k := range []kind{computing, blocking} {
		for _, rated := range []bool{true, false} {
			for _, rule := range []tune.Rule{tune.AIMD, tune.Proportional} {
				unit := map[bool]string{true: "rate", false: "inflight"}[rated]
				t.Run(fmt.Sprintf("%s/%s/%v", k.name, unit, rule), func(t *testing.T) {
					t.Parallel()
					for seed := range seeds() {
						follows(t, newLoop(k, rated, rule, seed+1), seed+1)
					}
				})
			}
		}
	}
}

func seeds() uint64 {
	if testing.Short() {
		return 1
	}
	return thorough.Seeds(4, 20)
}

func follows(t *testing.T, l *loop, seed uint64) {
	race.SkipOneGoroutine(t)
	const react, settled = 10 * time.Second, 20 * time.Second
	l.pass(react)
	before, could := l.good, 0.0
	for _, factor := range []float64{0.5, 1, 2, 1} {
		capacity := factor * l.capacity()
		could += capacity * (react + settled).Seconds()
		l.places, l.rate = int(factor*float64(l.kind.places)), 1.5*capacity
		l.fill()
		l.pass(react)
		start := l.good
		limits := l.pass(settled)
		goodput := float64(l.good-start) / settled.Seconds() / capacity
		low, high := slices.Min(limits), slices.Max(limits)
		middle, swing := (low+high)/2, (high-low)/2
		off := 0.0
		if l.rated {
			off = math.Abs(middle/capacity - 1)
		} else {
			swing = max(0, swing-0.5) // it is a whole number
		}
		t.Logf("seed %d, capacity %v: goodput %.3f, limit %.1f to %.1f, swing %.3f", seed, capacity, goodput, low, high, swing/middle)
		if goodput < 0.9 || swing > 0.1*middle || off > 0.1 {
			t.Errorf("seed %d, capacity %v: goodput %.3f of it, want 0.9; the limit is %.1f to %.1f after ten seconds, which is ± %.3f, want 0.1",
				seed, capacity, goodput, low, high, swing/middle)
		}
	}
	goodput := float64(l.good-before) / could
	t.Logf("seed %d: goodput %.3f in all", seed, goodput)
	if goodput < 0.9 {
		t.Errorf("seed %d: goodput %.3f of the capacity in all, want 0.9", seed, goodput)
	}
}

// TestSignalIsCut takes the signal away from a limit that has followed a backend far
// down, and gives it back.
func TestSignalIsCut(t *testing.T) {
	for _, rule := range []tune.Rule{tune.AIMD, tune.Proportional} {
		l := newLoop(blocking, true, rule, 1)
		l.places /= 4
		l.pass(20 * time.Second)
		if low := l.tuner.Limit(); low > 0.3*l.capacity() {
			t.Fatalf("%v: the limit is %v", rule, low)
		}
		l.cut, l.places, l.moves = true, l.kind.places, nil
		l.pass(10 * time.Second)
		if got := l.tuner.Limit(); got != l.capacity() {
			t.Errorf("%v: without a signal the limit is %v, want %v", rule, got, l.capacity())
		}
		for _, m := range l.moves[1:] {
			if m.Rule != tune.Fallback || m.To < m.From {
				t.Errorf("%v: %v", rule, m)
			}
		}
		l.cut, l.moves = false, nil
		l.pass(5 * time.Second)
		if len(l.moves) < 2 || l.moves[0].Rule != tune.Resume || l.moves[1].Rule != rule {
			t.Errorf("%v: with its signal back: %v", rule, l.moves)
		}
	}
}
