package drill

import (
	"math"
	"slices"
	"testing"
	"time"
)

func threePhases() []Phase {
	return Config{Overload: 10, Calm: 4 * time.Second, Step: 8 * time.Second, Recovery: 6 * time.Second}.phases(640)
}

func TestScheduleDependsOnTheSeedAlone(t *testing.T) {
	one := schedule(1, threePhases())
	if !slices.Equal(one, schedule(1, threePhases())) {
		t.Error("the same seed gave other arrival times")
	}
	if slices.Equal(one, schedule(2, threePhases())) {
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
		at := schedule(seed, threePhases())
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
