package tune_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway/tune"
)

// BenchmarkRead is a reading that moves nothing.
func BenchmarkRead(b *testing.B) {
	tuner := must(tune.New(latency(tune.Config{})))
	now := t0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(250 * ms)
		tuner.Read(now, 90, 50)
	}
}

// BenchmarkMove is a reading that moves the limit, up and down in turn.
func BenchmarkMove(b *testing.B) {
	tuner := must(tune.New(latency(tune.Config{Persist: -1})))
	now := t0
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Second)
		tuner.Read(now, tuner.Limit(), float64(10+90*(i%2)))
	}
}

// BenchmarkReason is what it takes to say why.
func BenchmarkReason(b *testing.B) {
	tuner := must(tune.New(latency(tune.Config{Persist: -1})))
	m, _ := tuner.Read(t0, 90, 100)
	b.ReportAllocs()
	for b.Loop() {
		_ = m.String()
	}
}
