package balance

import (
	"math"
	"sync/atomic"
	"time"
)

// latency is how long attempts at an endpoint take until the answer begins, averaged.
// Updates that collide may be lost.
type latency struct {
	mean atomic.Uint64 // the bits of a float64, in nanoseconds; 0: unknown
	at   atomic.Int64  // of the last one
}

const (
	// latencySamples is over how many attempts latencies are averaged at least.
	latencySamples = 32
	// latencyMemory is the time constant of the average where attempts are few.
	latencyMemory = 2 * time.Second
	// latencyFade is how long a latency is remembered of an endpoint that gets no
	// attempts. It is what has a slow endpoint tried again.
	latencyFade = 10 * time.Second
	// minSlower is the factor by which averages must differ to count. Averages of equal
	// endpoints differ by less, also if requests are of very different length.
	minSlower = 2
)

// add takes in an attempt that took d and ended at a time.
func (l *latency) add(at int64, d time.Duration) {
	mean := math.Float64frombits(l.mean.Load())
	share := max(1.0/latencySamples, -math.Expm1(-float64(at-l.at.Load())/float64(latencyMemory)))
	if mean == 0 {
		share = 1
	}
	mean += (float64(max(d, 1)) - mean) * share
	l.mean.Store(math.Float64bits(mean))
	later(&l.at, at)
}

// ratio returns how many times as slow l is as m: 1 if they are about the same, or one of
// them is unknown.
func (l *latency) ratio(m *latency, at int64) float64 {
	a, b := math.Float64frombits(l.mean.Load()), math.Float64frombits(m.mean.Load())
	if a == 0 || b == 0 || a <= minSlower*b && b <= minSlower*a {
		return 1
	}
	if a > b {
		a *= math.Exp(-float64(at-l.at.Load()) / float64(latencyFade))
	} else {
		b *= math.Exp(-float64(at-m.at.Load()) / float64(latencyFade))
	}
	if a <= minSlower*b && b <= minSlower*a {
		return 1
	}
	return a / b
}
