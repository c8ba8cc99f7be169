package load

import (
	"runtime"
	"testing"
	"time"
)

// BenchmarkSampling shows what looking costs a server, in percent of one processor:
// a sample of all measures, one for each interval of 100 ms, and a reading of the
// scheduler, one for each of 10,000 requests a second. A thousand goroutines
// wait meanwhile, as in a server that is in use.
func BenchmarkSampling(b *testing.B) {
	for _, bench := range []struct {
		name string
		rate float64 // per second
		look func(*Meter, time.Time)
	}{
		{"all measures", 10, func(m *Meter, now time.Time) { m.Utilization(now) }},
		{"scheduler", 10_000, func(m *Meter, now time.Time) { m.Executor(now) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			m, err := New(Config{})
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			end := make(chan struct{})
			defer close(end)
			for range 1000 {
				go func() { <-end }()
			}
			runtime.Gosched()
			now := time.Now()
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Duration(float64(time.Second) / bench.rate)) // a new one is due
				bench.look(m, now)
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*bench.rate*100, "%-of-a-core")
		})
	}
}
