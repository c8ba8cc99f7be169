package cost

import (
	"math"
	"strings"
	"testing"
	"time"
)

// A cost that is used stays, after its error has become wide, within two standard errors of the
// estimate.
func TestKnownCost(t *testing.T) {
	for before, want := range map[float64]float64{1: 2, 5: 5, 100: 18} {
		e := newWorld(t, 1, Config{}).Estimator
		e.Begin(t0, known("a"))
		k := &e.keys[named]
		k.used, k.cost = true, before
		e.filter.cost[named], e.filter.prior[named], e.filter.p[named][named] = 10e-3, 1, 4e-3*4e-3
		e.learn(&interval{to: time.Second, counts: make([]float64, cap(e.keys))})
		if !k.used || math.Abs(k.cost-want) > 0.05 {
			t.Errorf("a cost of %v units is %.3f with an estimate of 10 ± 4, want %v", before, k.cost, want)
		}
	}
}

// An interval counts if the processor time is known, did not go back, and the interval is no longer
// than four.
func TestValid(t *testing.T) {
	for _, row := range []struct {
		interval interval
		want     bool
	}{
		{interval{to: time.Second, used: 1}, true}, {interval{to: time.Second}, true}, {interval{to: time.Second, used: -1}, false},
		{interval{from: 1, to: 4*time.Second + 1}, true}, {interval{from: 1, to: 4*time.Second + 2}, false},
		{interval{to: time.Second, unknown: true}, false},
	} {
		if row.interval.valid(time.Second) != row.want {
			t.Errorf("%+v is valid: %v", row.interval, !row.want)
		}
	}
}

// The cost that is the most standard errors below 0 becomes 0 first. Another one may no longer be
// negative then.
func TestProject(t *testing.T) {
	var f filter
	f.init(named + 2)
	a, b := named, named+1
	f.cost[a], f.cost[b] = -1e-3, -2e-3
	f.p[a][a], f.p[b][b], f.p[a][b], f.p[b][a] = 1e-8, 1e-4, 5e-7, 5e-7
	f.project(named + 2)
	if f.cost[a] != 0 || math.Abs(f.cost[b]-48e-3) > 1e-6 {
		t.Errorf("the costs are %v, want 0 and 0.048", f.cost[named:])
	}

	f.init(named + 2) // a cost that is known exactly
	f.cost[a], f.cost[b], f.p[b][b] = -1e-3, 2e-3, 1e-4
	f.project(named + 2)
	if f.cost[a] != 0 || f.cost[b] != 2e-3 {
		t.Errorf("the costs are %v, want 0 and 0.002", f.cost[named:])
	}
}

// The longest name, and the time after which a key loses its place.
func TestPlaces(t *testing.T) {
	for n, want := range map[int]int{256: named, 257: shared} {
		if place := newWorld(t, 1, Config{}).find(known(strings.Repeat("x", n))); place != want {
			t.Errorf("a name of %d bytes has place %d, want %d", n, place, want)
		}
	}
	for idle, want := range map[time.Duration]uint32{10*time.Minute - 1: shared, 10 * time.Minute: named} {
		e := newWorld(t, 1, Config{MaxKeys: 1})
		e.Begin(t0, known("old"))
		if ticket, _, _ := e.Begin(t0.Add(idle), known("new")); ticket.place != want {
			t.Errorf("after %v a new key has place %d, want %d", idle, ticket.place, want)
		}
		e.Done(t0, Ticket{place: uint32(len(e.keys))}) // is no Ticket, and does nothing
	}
}

// The largest cost is a Duration.
func TestLargestCost(t *testing.T) {
	if got := seconds(1e300); got != math.MaxInt64/2+1 { // as a float64
		t.Errorf("1e300 s are %d ns", got)
	}
}

// Rounding errors count as noise: they make a cost change less, and leave an error where the
// difference of two covariances has no digit left.
func TestRoundingErrors(t *testing.T) {
	for _, row := range []struct {
		digits, noise float64
		cost, error   float64
	}{
		{0.5, 1, 48. / 42, 4 * 26. / 42}, {1e-18, 1e-20, 3, 4 * (18e-20 + 16e-18) / 16},
	} {
		var f filter
		f.init(named + 1)
		f.digits, f.noise, f.tick = row.digits, row.noise, 0
		f.p[background][background], f.p[named][named], f.prior[named] = 0, 4, 9
		x := make([]float64, named+1)
		x[named] = 2
		f.learn(x, 6)
		if cost, e := f.cost[named], f.p[named][named]; math.Abs(cost/row.cost-1) > 1e-9 || math.Abs(e/row.error-1) > 1e-9 {
			t.Errorf("with %v digits lost and noise of %v: cost %v ± √%v, want %v ± √%v", row.digits, row.noise, cost, e, row.cost, row.error)
		}
	}
}
