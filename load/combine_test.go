package load

import (
	"math"
	"strings"
	"testing"
	"time"
)

// The three ways to make one utilization of the same readings, at the same times.
func TestWaysToCombine(t *testing.T) {
	var a, b float64
	signals := []Signal{{"a", func() float64 { return a }}, {"b", func() float64 { return b }}}
	mean := func(all []Reading) (sum float64) {
		for _, r := range all {
			if r.Name == "a" || r.Name == "b" {
				sum += r.Share / 2
			}
		}
		return sum
	}
	nan := math.NaN()
	for _, row := range []struct {
		way    string
		config Config
		a, b   float64
		want   float64
	}{
		{"maximum", Config{}, 0.4, 0.9, 0.9},
		{"maximum", Config{}, nan, 0.3, 0.3},
		{"individual, below the first threshold", Config{Thresholds: map[string]Thresholds{"a": {2, 4, 6, 8}}}, 1, 0, 0.4},
		{"individual, at the first", Config{Thresholds: map[string]Thresholds{"a": {2, 4, 6, 8}}}, 2, 0, 0.8},
		{"individual, between two", Config{Thresholds: map[string]Thresholds{"a": {2, 4, 6, 8}}}, 5, 0, 0.91},
		{"individual, at the last", Config{Thresholds: map[string]Thresholds{"a": {2, 4, 6, 8}}}, 8, 0, 1},
		{"individual, above the last", Config{Thresholds: map[string]Thresholds{"a": {2, 4, 6, 8}}}, 12, 0, 1.1},
		{"individual, beside one with a target", Config{Thresholds: map[string]Thresholds{"a": {2, 4, 6, 8}}}, 2, 0.9, 0.9},
		{"individual, with a reference", Config{Thresholds: map[string]Thresholds{"a": {2, 4, 6, 8}}, Reference: Thresholds{1, 2, 3, 4}}, 4, 0, 2},
		{"individual, unknown", Config{Thresholds: map[string]Thresholds{"a": {2, 4, 6, 8}}}, nan, 0.1, 0.1},
		{"function", Config{Combine: mean}, 0.4, 0.8, 0.6},
		{"function, of which one is unknown", Config{Combine: mean}, nan, 0.8, 0.4},
		{"function that returns NaN", Config{Combine: func([]Reading) float64 { return nan }}, 1, 1, 0},
		{"function that is negative", Config{Combine: func([]Reading) float64 { return -1 }}, 1, 1, 0},
		{"function that divides by 0", Config{Combine: func([]Reading) float64 { return math.Inf(1) }}, 1, 1, math.MaxFloat32},
		{"function of individual shares", Config{Combine: mean, Thresholds: map[string]Thresholds{"a": {2, 4, 6, 8}}}, 8, 0, 0.5},
	} {
		row.config.Signals = signals
		a, b = row.a, row.b
		m := must(t, row.config)
		if got := m.Utilization(t0); math.Abs(got-row.want) > 1e-9 {
			t.Errorf("%s of %v and %v: %v, want %v", row.way, row.a, row.b, got, row.want)
		}
	}
}

func TestCombinationNamesTheBadField(t *testing.T) {
	for _, row := range []struct {
		config Config
		want   string
	}{
		{Config{Thresholds: map[string]Thresholds{"x": {1, 2, 3, 4}}}, `load: Thresholds["x"] is [1 2 3 4], must be left out: there is no such measure`},
		{Config{Thresholds: map[string]Thresholds{"memory": {1, 2, 2, 4}}}, `load: Thresholds["memory"] is [1 2 2 4], must be four positive numbers that ascend`},
		{Config{Thresholds: map[string]Thresholds{"memory": {0, 1, 2, 4}}}, `load: Thresholds["memory"] is [0 1 2 4], must be four`},
		{Config{Thresholds: map[string]Thresholds{"memory": {1, 2, 3, math.Inf(1)}}}, `load: Thresholds["memory"] is [1 2 3 +Inf], must be four`},
		{Config{Thresholds: map[string]Thresholds{"memory": {1, math.NaN(), 3, 4}}}, `load: Thresholds["memory"] is [1 NaN 3 4], must be four`},
		{Config{Reference: Thresholds{1, 1, 1, 1}}, `load: Reference is [1 1 1 1], must be four`},
	} {
		if _, err := New(row.config); err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("New(%+v) = %v, want %s", row.config, err, row.want)
		}
	}
}

// The share of a value never falls while the value rises.
func FuzzThresholds(f *testing.F) {
	f.Add(1.0, 2.0, 3.0, 4.0, 1.5, 2.5)
	f.Add(1e-300, 1e-299, 1e30, 1e38, 0.0, 1e308)
	f.Fuzz(func(t *testing.T, a, b, c, d, low, high float64) {
		th := Thresholds{a, b, c, d}
		if th.check("x") != nil || !(low <= high) {
			return
		}
		x, y := th.share(low, &defaultReference), th.share(high, &defaultReference)
		if !(x >= 0 && y >= x*(1-1e-12)) {
			t.Errorf("%v: %v has the share %v, %v has %v", th, low, x, high, y)
		}
	})
}

func TestCombiningAllocatesNothing(t *testing.T) {
	m := must(t, Config{
		Interval:   10 * time.Millisecond,
		Signals:    []Signal{{"a", func() float64 { return 1 }}},
		Thresholds: map[string]Thresholds{"a": {1, 2, 3, 4}},
		Combine:    func(all []Reading) float64 { return all[len(all)-1].Share },
	})
	now := t0
	if n := testing.AllocsPerRun(100, func() {
		now = now.Add(time.Second)
		m.Utilization(now)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
