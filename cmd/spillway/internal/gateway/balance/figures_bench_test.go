//go:build !race

package balance

import (
	"math"
	"testing"
	"time"
)

// BenchmarkFigures shows figures of the model in virtual time. They are the same on each machine, and
// depend on the seeds. Each comment has the band that a change should stay in.
//
//	go test -run '^$' -bench Figures -benchtime 1x ./cmd/spillway/internal/gateway/balance
func BenchmarkFigures(b *testing.B) {
	b.Run("shares", benchmarkShares)
	b.Run("speeds", benchmarkSpeeds)
}

// The ratio of requests of two endpoints whose weights are 4 to 1: of all seeds, and of the seeds with
// the smallest and the greatest. Bands: 3.8 to 4.2, and 3.2 to 5.
func benchmarkShares(b *testing.B) {
	var mean, least, most float64
	for b.Loop() {
		fast, slow := 0, 0
		least, most = math.Inf(1), 0
		for seed := range uint64(20) {
			x, y := shares(b, seed)
			fast, slow = fast+x, slow+y
			ratio := float64(x) / float64(y)
			least, most = min(least, ratio), max(most, ratio)
		}
		mean = float64(fast) / float64(slow)
	}
	b.ReportMetric(mean, "ratio")
	b.ReportMetric(least, "least-ratio")
	b.ReportMetric(most, "most-ratio")
}

// The ratio of requests of two endpoints, one four times as fast, and the p99 compared with that of
// the best fixed weights. Bands: 3.6 to 4.4, and at most 1.2.
func benchmarkSpeeds(b *testing.B) {
	var ratio, p99 float64
	for b.Loop() {
		best := time.Duration(math.MaxInt64)
		for _, fixed := range []float64{2, 3, 3.5, 4, 4.5, 5, 6, 8} {
			best = min(best, speeds(b, fixed).p99())
		}
		m := speeds(b, 0)
		ratio, p99 = float64(m.servers[0].asked)/float64(m.servers[1].asked), float64(m.p99())/float64(best)
	}
	b.ReportMetric(ratio, "ratio")
	b.ReportMetric(p99, "of-best-p99")
}
