package cost

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"
)

// BenchmarkFigures shows figures of the model in virtual time. They are the same on each machine, and
// depend on the seeds. Each comment has the band that a change should stay in.
//
//	go test -run '^$' -bench Figures -benchtime 1x ./cost
func BenchmarkFigures(b *testing.B) {
	b.Run("learning", benchmarkLearning)
	b.Run("constants", benchmarkConstants)
}

// Costs outside of two standard errors after two minutes, and runs that know both costs after 30 s.
// Bands: 0 to 12 % and 80 to 100 %.
func benchmarkLearning(b *testing.B) {
	const runs = 40
	outside, soon := 0, 0
	for b.Loop() {
		outside, soon = 0, 0
		for seed := range uint64(runs) {
			known, wrong, _ := learned(b, seed)
			if outside += wrong; known {
				soon++
			}
		}
	}
	b.ReportMetric(100*float64(outside)/(2*runs), "outside-%")
	b.ReportMetric(100*float64(soon)/runs, "known-after-30s-%")
}

// The mean error with each constant, and with half and double its value. The limit has less freedom:
// half of it takes noise for changes, and with double of it a doubled cost is learned slowly.
// Band: at most 12 % for each; the usual constants have 7 %.
func benchmarkConstants(b *testing.B) {
	measure := func(name string, change func(*filter)) {
		b.Run(name, func(b *testing.B) {
			mean := 0.0
			for b.Loop() {
				mean = meanError(b, change)
			}
			b.ReportMetric(100*mean, "mean-error-%")
		})
	}
	measure("usual", func(*filter) {})
	fields := map[string]func(*filter) *float64{
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
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		factors := []float64{0.5, 2}
		if name == "limit" {
			factors = []float64{0.75, 1.33}
		}
		for _, by := range factors {
			measure(fmt.Sprintf("%s×%v", name, by), func(f *filter) { *fields[name](f) *= by })
		}
	}
}

// meanError returns the mean relative error of costs, in intervals after a minute, with background
// work, outliers, and a change of one cost.
func meanError(t testing.TB, change func(*filter)) float64 {
	t.Helper()
	sum, n := 0.0, 0.0
	for seed := range uint64(2) {
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
