package quota

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
)

// tally is what happened to the calls of one customer.
type tally struct{ offered, admitted int }

// A load is how many calls per second a customer offers at a time.
type load func(at time.Duration) float64

func steady(rate float64) load { return func(time.Duration) float64 { return rate } }

// play offers the loads from one time to another and returns a tally for each. The
// calls of a customer come evenly, or else as a Poisson process.
func play(q *Quota, loads map[string]load, from, to time.Duration, r *rand.Rand) map[string]*tally {
	all, next := map[string]*tally{}, map[string]time.Duration{}
	for name := range loads {
		all[name], next[name] = new(tally), from
	}
	for now := from; now < to; now += ms / 4 {
		for name, load := range loads {
			for next[name] <= now {
				gap := 1.
				if r != nil {
					gap = r.ExpFloat64()
				}
				next[name] += time.Duration(gap / load(now) * float64(time.Second))
				all[name].offered++
				if admit(q, now, name, critical) {
					all[name].admitted++
				}
			}
		}
	}
	return all
}

// One of two customers offers twenty times its quota: the other loses nothing.
func TestFairness(t *testing.T) {
	race.SkipOneGoroutine(t)
	const quota = 500.
	greedy := func(at time.Duration) float64 {
		if at < 2*time.Second {
			return 100
		}
		return 20 * quota
	}
	for name, row := range map[string]struct {
		config LocalConfig
		modest load
		r      *rand.Rand
	}{
		"limits":                {LocalConfig{DefaultLimit: Limit{Rate: quota}}, steady(quota), nil},
		"a share of a capacity": {LocalConfig{Capacity: 2 * quota}, steady(quota), nil},
		"known by name, by weight": {
			LocalConfig{Capacity: 2000, Customers: map[string]Limit{"modest": {Weight: 1}, "greedy": {Weight: 3}}}, steady(quota), nil,
		},
		"random arrivals at nine tenths": {LocalConfig{Capacity: 2 * quota}, steady(0.9 * quota), rand.New(rand.NewPCG(1, 2))},
		"what was lent is wanted back, at once": {
			LocalConfig{Capacity: 2 * quota},
			func(at time.Duration) float64 {
				if at.Truncate(2*time.Second)/(2*time.Second)%2 == 0 {
					return 10
				}
				return quota
			}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := must(t, Config{Allocator: mustLocal(t, row.config)})
			all := play(q, map[string]load{"modest": row.modest, "greedy": greedy}, 0, 10*time.Second, row.r)
			if m := all["modest"]; m.admitted != m.offered {
				t.Errorf("the modest customer lost %d of %d calls", m.offered-m.admitted, m.offered)
			}
			if g := all["greedy"]; g.admitted > g.offered/4 || float64(g.admitted) < 8*quota*0.9 {
				t.Errorf("the greedy customer got %d of %d calls", g.admitted, g.offered)
			}
		})
	}
}

// Capacity is used by any customer with demand, and is not exceeded once the customers have
// their new leases; a customer that comes back gets its share at once.
func TestBorrowing(t *testing.T) {
	race.SkipOneGoroutine(t)
	const capacity = 1000.
	q := must(t, Config{Allocator: mustLocal(t, LocalConfig{Capacity: capacity}), BurstSeconds: 0.1})
	second := func(from time.Duration, loads map[string]load) (sum float64, all map[string]*tally) {
		all = play(q, loads, from, from+time.Second, nil)
		for _, one := range all {
			sum += float64(one.admitted)
		}
		return sum, all
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if got < 0.97*want || got > 1.03*want {
			t.Errorf("%s: %v admitted in a second, want about %v", what, got, want)
		}
	}
	both := map[string]load{"a": steady(5000), "b": steady(5000)}
	second(0, map[string]load{"a": steady(5000)})
	sum, _ := second(time.Second, map[string]load{"a": steady(5000)})
	near("one alone", sum, capacity)
	// b comes back. Until a has been told, at most three intervals, it goes on at twice its share.
	sum, all := second(2*time.Second, both)
	near("b, in its first second", float64(all["b"].admitted), capacity/2+0.075*capacity/2) // and three quarters of its bucket
	if most := capacity * (1 + 0.3 + 0.1); sum > most {
		t.Errorf("%v admitted in the second in which b came back, want at most %v", sum, most)
	}
	sum, all = second(3*time.Second, both)
	near("both", sum, capacity)
	near("a of both", float64(all["a"].admitted), capacity/2)
	second(4*time.Second, map[string]load{"a": steady(5000), "b": steady(100)})
	sum, all = second(5*time.Second, map[string]load{"a": steady(5000), "b": steady(100)})
	near("what b leaves", sum, capacity)
	near("b, that wants little", float64(all["b"].admitted), 100)
}

// Under a load of four equal classes at twice the quota, the upper two are served
// and the lower two are not.
func TestClassesUnderOverload(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, row := range []struct {
		load float64 // in quotas
		want [4]float64
	}{
		{0.9, [4]float64{1, 1, 1, 1}},
		{2, [4]float64{0, 0, 1, 1}},
		{3, [4]float64{0, 0, 1. / 3, 1}},
		{10, [4]float64{0, 0, 0, 0.4}},
	} {
		q := must(t, Config{Allocator: fixed{Rate: 1000}})
		var all [4]tally
		every := time.Duration(float64(time.Second) / 1000 / row.load)
		for i := range int(20 * time.Second / every) {
			at, class := time.Duration(i)*every, i%4
			ok := admit(q, at, "c", class)
			if at < 5*time.Second { // the burst, and the first rejections
				continue
			}
			all[class].offered++
			if ok {
				all[class].admitted++
			}
		}
		for class, one := range all {
			if got := float64(one.admitted) / float64(one.offered); got < row.want[class]-0.03 || got > row.want[class]+0.03 {
				t.Errorf("at %v quotas class %d: %.3f served, want %.3f", row.load, class, got, row.want[class])
			}
		}
	}
}
