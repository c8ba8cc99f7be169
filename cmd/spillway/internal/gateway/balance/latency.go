package balance

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// latency is an estimate of how long attempts at one endpoint take until the answer begins:
// the mean of the logarithm, so that a single slow answer changes little, its standard error,
// and how many attempts were in flight meanwhile. The estimate fades while there are no
// answers: an endpoint that was slow once is tried again.
type latency struct {
	mean  atomic.Uint64 // of the logarithm of the latency, and its standard error; see pack
	usual atomic.Uint64 // attempts in flight, as the bits of a float64
	until atomic.Int64  // the estimate is ignored from then on

	mu       sync.Mutex
	samples  float64
	log      float64
	variance float64
	flight   float64
	at       int64 // of the last sample
}

const (
	// maxSamples is how many answers the estimate covers. With fewer, estimates of equal
	// endpoints differ more; with more, an endpoint that gets slow is noticed later.
	maxSamples = 64
	// minSamples is how many answers an estimate needs. The standard error of fewer is wrong
	// too often.
	minSamples = 8
	// latencyMemory is the time constant with which samples are forgotten. An endpoint that
	// gets no requests is tried again after latencyMemory * ln(maxSamples/minSamples), 21 s,
	// and then about once a second while it is still slow.
	latencyMemory = 10 * time.Second
	// minSlower is the factor by which an endpoint must be slower to count as slow. Smaller
	// differences matter less than the number of requests in flight.
	minSlower = 1.5
	// minErrors is by how many standard errors it must be slower. Of a thousand comparisons
	// of equal endpoints, three are wrong.
	minErrors = 3
	// minLatency is the least latency that is compared: less is the network, or this process.
	minLatency = time.Millisecond
)

// add takes in an attempt that ended at a time and took d, with so many attempts in flight.
func (l *latency) add(at int64, d time.Duration, flight int64) {
	x := math.Log(float64(max(d, minLatency)))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.samples = min(1+l.samples*math.Exp(-float64(max(at-l.at, 0))/float64(latencyMemory)), maxSamples)
	l.at = max(l.at, at)
	share := 1 / l.samples
	difference := x - l.log
	l.log += share * difference
	l.variance = (1 - share) * (l.variance + share*difference*difference)
	l.flight += share * (float64(flight) - l.flight)
	l.mean.Store(pack(l.log, math.Sqrt(l.variance/l.samples)))
	l.usual.Store(math.Float64bits(l.flight))
	if l.samples >= minSamples {
		l.until.Store(l.at + int64(float64(latencyMemory)*math.Log(l.samples/minSamples)))
	}
}

// exceeds takes in an attempt that was given up after d: the endpoint takes at least as long.
func (l *latency) exceeds(at int64, d time.Duration, flight int64) {
	if mean, _ := unpack(l.mean.Load()); math.Log(float64(max(d, minLatency))) > mean {
		l.add(at, d, flight)
	}
}

// ratio returns how many times as slow l is as m: 1 if they are about the same, or one of
// them is unknown.
func (l *latency) ratio(m *latency, at int64) float64 {
	if at >= l.until.Load() || at >= m.until.Load() {
		return 1
	}
	a, ea := unpack(l.mean.Load())
	b, eb := unpack(m.mean.Load())
	d := math.Abs(a - b)
	if d <= math.Log(minSlower) || d <= minErrors*math.Hypot(ea, eb) {
		return 1
	}
	return math.Exp(a - b)
}

// crowd returns how many times as many attempts are in flight as usual, at least 1.
func (l *latency) crowd(flight int64) float64 {
	return max(1, float64(flight+1)/(math.Float64frombits(l.usual.Load())+1))
}

// pack makes one word of two numbers, so that both are read together.
func pack(a, b float64) uint64 {
	return uint64(math.Float32bits(float32(a)))<<32 | uint64(math.Float32bits(float32(b)))
}

func unpack(w uint64) (a, b float64) {
	return float64(math.Float32frombits(uint32(w >> 32))), float64(math.Float32frombits(uint32(w)))
}
