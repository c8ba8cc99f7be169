package drill

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

func threePhases() []Phase {
	return Config{Overload: 10, Calm: 4 * time.Second, Step: 8 * time.Second, Recovery: 6 * time.Second}.phases(640)
}

// times returns when the calls of one client with classes in equal shares are sent.
func times(seed uint64) (at []time.Duration) {
	for _, a := range schedule(seed, threePhases(), []float64{1, 1, 1, 1}, 1) {
		at = append(at, a.at)
	}
	return at
}

func TestScheduleDependsOnTheSeedAlone(t *testing.T) {
	one := times(1)
	if !slices.Equal(one, times(1)) {
		t.Error("the same seed gave other arrival times")
	}
	if slices.Equal(one, times(2)) {
		t.Error("another seed gave the same arrival times")
	}
	if !slices.IsSorted(one) {
		t.Error("the arrival times are out of order")
	}
}

// A Poisson process has as many arrivals as its rate says, give or take the root
// of that, and gaps whose deviation is their mean.
func TestScheduleIsPoisson(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3, 1 << 60} {
		at := times(seed)
		for _, p := range threePhases() {
			from, _ := slices.BinarySearch(at, seconds(p.Start))
			to, _ := slices.BinarySearch(at, seconds(p.End))
			want := p.OfferedRPS * (p.End - p.Start)
			if got := float64(to - from); math.Abs(got-want) > 4*math.Sqrt(want) {
				t.Errorf("seed %d: %v arrivals in the %s, want %v", seed, got, p.Name, want)
			}
			mean, deviation := gaps(at[from:to])
			if cv := deviation / mean; cv < 0.9 || cv > 1.1 {
				t.Errorf("seed %d: gaps in the %s deviate by %.2f of their mean, want 1", seed, p.Name, cv)
			}
		}
	}
}

func TestScheduleIsFairAndDependsOnTheSeedAlone(t *testing.T) {
	at := times(1)
	for _, mix := range [][]float64{{1, 1, 1, 1}, {0, 3, 1, 0}, {0, 0, 0, 5}} {
		calls, total := schedule(1, threePhases(), mix, 5), 0.0
		if !slices.Equal(calls, schedule(1, threePhases(), mix, 5)) {
			t.Errorf("%v: the same seed gave other classes", mix)
		}
		if alone := schedule(1, threePhases(), mix, 1); slices.EqualFunc(calls, alone, func(a, b arrival) bool { return a.client == b.client }) ||
			!slices.EqualFunc(calls, alone, func(a, b arrival) bool { return a.class == b.class }) {
			t.Errorf("%v: the clients change the classes, or nothing", mix)
		}
		var n [spillway.Criticalities]float64
		var of [5]float64
		for i, c := range calls {
			n[c.class.Index()]++
			of[c.client]++
			if c.at != at[i] {
				t.Fatalf("call %d was moved", i)
			}
		}
		for client, got := range of {
			if want := float64(len(at)) / 5; math.Abs(got-want) > 4*math.Sqrt(want) {
				t.Errorf("%v calls of client %d, want %v", got, client, want)
			}
		}
		for _, share := range mix {
			total += share
		}
		for class, share := range mix {
			want := share / total * float64(len(at))
			if math.Abs(n[class]-want) > 4*math.Sqrt(want) {
				t.Errorf("%v: %v calls of class %d, want %v", mix, n[class], class, want)
			}
		}
	}
}

func gaps(at []time.Duration) (mean, deviation float64) {
	n := float64(len(at) - 1)
	for i := range at[1:] {
		mean += (at[i+1] - at[i]).Seconds() / n
	}
	for i := range at[1:] {
		d := (at[i+1] - at[i]).Seconds() - mean
		deviation += d * d / n
	}
	return mean, math.Sqrt(deviation)
}
