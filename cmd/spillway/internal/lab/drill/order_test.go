package drill

import (
	"math"
	"testing"
)

// classes returns the counts of classes, the highest first, from what was good
// and what was rejected.
func classes(counts ...[2]int) []NamedCounts {
	var all []NamedCounts
	for _, c := range counts {
		all = append(all, NamedCounts{Name: "C", Counts: Counts{Offered: c[0] + c[1], Goodput: c[0], RejectedLocal: c[1] / 2, RejectedByBackend: c[1] - c[1]/2}})
	}
	return all
}

func TestMisplaced(t *testing.T) {
	for _, row := range []struct {
		name    string
		classes []NamedCounts
		want    float64
	}{
		{"nothing at all", nil, 0},
		{"nothing rejected", classes([2]int{10, 0}, [2]int{10, 0}, [2]int{10, 0}, [2]int{10, 0}), 0},
		{"strict order", classes([2]int{10, 0}, [2]int{5, 5}, [2]int{0, 10}, [2]int{0, 10}), 0},
		{"no order at all", classes([2]int{5, 5}, [2]int{5, 5}, [2]int{5, 5}, [2]int{5, 5}), 0.5},
		{"the wrong order", classes([2]int{0, 10}, [2]int{10, 0}), 1},
		{"a little got through", classes([2]int{10, 0}, [2]int{5, 5}, [2]int{1, 9}, [2]int{4, 6}), 0.25},
	} {
		if got := misplaced(row.classes); math.Abs(got-row.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

func TestCheckHighest(t *testing.T) {
	for _, row := range []struct {
		overload float64
		classes  []NamedCounts
		want     float64
		pass     bool
	}{
		{2, classes([2]int{99, 1}, [2]int{0, 100}, [2]int{0, 100}, [2]int{0, 100}), 0.9, true},
		{2, classes([2]int{80, 20}, [2]int{0, 100}, [2]int{0, 100}, [2]int{0, 100}), 0.9, false},
		{10, classes([2]int{37, 63}, [2]int{0, 100}, [2]int{0, 100}, [2]int{0, 100}), 0.36, true},
		{10, classes([2]int{35, 65}, [2]int{0, 100}, [2]int{0, 100}, [2]int{0, 100}), 0.36, false},
		{0.5, classes([2]int{100, 0}, [2]int{100, 0}, [2]int{100, 0}, [2]int{100, 0}), 0.9, true},
	} {
		r := sample()
		r.Settings.Protect, r.Settings.Overload, r.With.Classes, r.With.Offered = ProtectBoth, row.overload, row.classes, 400
		r.CapacityRPS = 400 / row.overload / (r.Settings.Phases[1].End - r.Settings.Phases[1].Start)
		if c := r.checkHighest(&r.With.Classes[0]); math.Abs(c.Want-row.want) > 1e-9 || c.Pass != row.pass {
			t.Errorf("at %v: %v of %v, pass is %v", row.overload, *c.Got, c.Want, c.Pass)
		}
	}
}
