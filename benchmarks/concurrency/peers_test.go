package main

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
)

// A feed is a number of equal samples, and the limit that a rule has after the last
// one.
type feed struct {
	n        int
	at, took Time
	inFlight int
	want     int
}

func check(t *testing.T, r rule, feeds ...feed) {
	t.Helper()
	for i, f := range feeds {
		for range f.n {
			r.learn(sample{at: f.at, took: f.took, inFlight: f.inFlight, served: true})
		}
		if got := r.limit(); got != f.want {
			t.Errorf("limit %d after step %d %+v", got, i, f)
		}
	}
}

func TestGradient2ByHand(t *testing.T) {
	check(t, newGradient2(nil),
		feed{1, 1 * ms, 20 * ms, 1, 20},      // a window needs 10 requests
		feed{20, 900 * ms, 20 * ms, 20, 20},  // and ends after a second
		feed{1, 1100 * ms, 20 * ms, 20, 20},  // 0.8 · 20 + 0.2 · (20 + 4) = 20.8
		feed{20, 1500 * ms, 60 * ms, 20, 20}, // long is 40 ms, the gradient 1
		feed{1, 2200 * ms, 60 * ms, 20, 21},  // 21.6
		feed{20, 2500 * ms, 200 * ms, 20, 21},
		feed{1, 3300 * ms, 200 * ms, 20, 21}, // long is 93 ms, the gradient 0.7: 21.1
		feed{20, 3500 * ms, 900 * ms, 5, 21}, // fewer than half of the limit in flight
		feed{1, 4400 * ms, 900 * ms, 5, 21},
		feed{20, 4500 * ms, 9 * sec, 30, 21},
		feed{1, 5500 * ms, 9 * sec, 30, 20}, // the gradient is 0.5, and 20 the least
	)
}

func TestVegasByHand(t *testing.T) {
	check(t, newVegas(&Process{seed: 1}),
		feed{1, 0, 10 * ms, 20, 20},  // the shortest time
		feed{1, 0, 10 * ms, 20, 26},  // no queue
		feed{1, 0, 10 * ms, 12, 26},  // fewer than half of the limit in flight
		feed{1, 0, 12 * ms, 20, 26},  // a queue of 5
		feed{1, 0, 10800000, 20, 27}, // of 2
		feed{1, 0, 20 * ms, 20, 26},  // of 14
		feed{1, 0, 5 * ms, 20, 26},   // shorter
		feed{70, 0, 15 * ms, 200, 9}, // down to where the queue is 6
		feed{1, 0, 5 * ms, 200, 15},  // no queue
		feed{500, 0, 5 * ms, 900, 1000},
	)
}

func TestBBRByHand(t *testing.T) {
	p := &Process{}
	b := newBBR(p)
	for _, x := range []struct {
		now  Time
		n    int
		took Time
		want int
	}{
		{50 * ms, 30, 14100 * time.Microsecond, unlimited}, // the current bucket does not count
		{150 * ms, 0, 0, 5},            // 30 per 0.1 s · 15 ms = 4.5 in flight, and one more
		{250 * ms, 40, 100 * ms, 5},    // still
		{350 * ms, 0, 0, 7},            // 40 per 0.1 s · 15 ms = 6
		{10_050 * ms, 0, 0, 41},        // the first bucket has expired: 40 per 0.1 s · 100 ms
		{20_050 * ms, 0, 0, unlimited}, // and the second
		{20_150 * ms, 1, 100 * ms, unlimited},
		{20_250 * ms, 0, 0, 2},
	} {
		p.now = x.now
		if got := b.limit(); got != x.want {
			t.Errorf("limit %d at %v, want %d", got, x.now, x.want)
		}
		for range x.n {
			b.learn(sample{at: p.now, took: x.took, served: true})
		}
	}
}

// library drives the limiter of failsafe-go itself. It reads the clock, so it runs in a
// bubble whose clock follows the virtual time.
type library struct {
	none
	limiter adaptivelimiter.AdaptiveLimiter[any]
	begin   time.Time
	limits  *[]float64
}

func (a *library) follow() { time.Sleep(time.Until(a.begin.Add(a.p.Now()))) }

func (a *library) Arrive(r *Request) {
	a.follow()
	permit, ok := a.limiter.TryAcquirePermit()
	if !ok {
		a.p.Reject(r)
		return
	}
	r.Slot = permit
	a.p.Run(r)
}

func (a *library) Finish(r *Request, served bool) {
	a.follow()
	if permit := r.Slot.(adaptivelimiter.Permit); served {
		permit.Record()
	} else {
		permit.Drop()
	}
}

func (a *library) Heartbeat() { *a.limits = append(*a.limits, float64(a.limiter.Limit())) }

// recorded is the formula, with the same record of its limits.
type recorded struct {
	*peer
	limits *[]float64
}

func (a *recorded) Heartbeat() { *a.limits = append(*a.limits, float64(a.limit())) }

// The formula follows the library, which estimates percentiles.
func TestFailsafeIsLikeTheLibrary(t *testing.T) {
	for _, name := range []string{"S1 2x", "S6", "S9", "S11b", "S16", "S19"} {
		var want, got []float64
		sc := prefixed(scenarios, name)[0]
		var actual, formula *Result
		synctest.Test(t, func(*testing.T) {
			actual = simulate(sc, 1, func(p *Process) Algorithm {
				return &library{none{p}, adaptivelimiter.NewWithDefaults[any](), time.Now(), &want}
			})
		})
		formula = simulate(sc, 1, func(p *Process) Algorithm {
			return &recorded{newPeer(newFailsafe)(p).(*peer), &got}
		})
		off := 0.0
		for i := range got {
			off += math.Abs(got[i]-want[i]) / want[i] / float64(len(got))
		}
		t.Logf("%s: the limit differs by %.1f%% on average, good %d and %d", sc.Name, 100*off, formula.Good, actual.Good)
		if off > 0.1 || math.Abs(float64(formula.Good-actual.Good)) > 0.03*float64(actual.Good) {
			t.Errorf("%s: the limit differs by %.0f%%, good %d, the library's %d", sc.Name, 100*off, formula.Good, actual.Good)
		}
	}
}
