package cost

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/thorough"
)

// Half or double the value of a constant changes the errors little. The limit has less freedom: half of it
// takes noise for changes, and with double of it a doubled cost is learned slowly.
func TestConstants(t *testing.T) {
	if !thorough.Enabled() {
		t.Skip("runs the table for each constant at half and at double: -tags thorough")
	}
	usual := meanError(t, func(*filter) {})
	t.Logf("mean error %.3f", usual)
	for name, field := range map[string]func(*filter) *float64{
		"limit":      func(f *filter) *float64 { return &f.limit },
		"memory":     func(f *filter) *float64 { return &f.memory },
		"tick":       func(f *filter) *float64 { return &f.tick },
		"firstNoise": func(f *filter) *float64 { return &f.noise },
		"leastNoise": func(f *filter) *float64 { return &f.leastNoise },
		"mostNoise":  func(f *filter) *float64 { return &f.mostNoise },
		"noiseRate":  func(f *filter) *float64 { return &f.noiseRate },
		"rejected":   func(f *filter) *float64 { return &f.rejected },
		"background": func(f *filter) *float64 { return &f.background },
		"digits":     func(f *filter) *float64 { return &f.digits },
	} {
		factors := []float64{0.5, 2}
		if name == "limit" {
			factors = []float64{0.75, 1.33}
		}
		for _, by := range factors {
			got := meanError(t, func(f *filter) { *field(f) *= by })
			t.Logf("%s × %v: %.3f", name, by, got)
			if got > usual+0.05 {
				t.Errorf("%s × %v: mean error %.3f, want %.3f", name, by, got, usual)
			}
		}
	}
}

// meanError returns the mean relative error of costs, in intervals after a minute, with background work,
// outliers, and a change of one cost.
func meanError(t *testing.T, change func(*filter)) float64 {
	t.Helper()
	sum, n := 0.0, 0.0
	for seed := range seeds(2) {
		w := newWorld(t, seed, Config{})
		change(&w.filter)
		dear, cheap := pair()
		w.idle = 0.02
		for second := range 400 {
			w.run(time.Second, dear, cheap)
			if second%40 == 17 {
				w.cpu += 0.5
			}
			if second == 200 {
				dear.cpu = 20
			}
			if second < 60 || second > 200 && second < 230 {
				continue
			}
			for _, c := range []*caller{dear, cheap} {
				cost, _ := w.of(c.key).milliseconds()
				sum, n = sum+math.Abs(cost/c.cpu-1), n+1
			}
		}
	}
	return sum / n
}
