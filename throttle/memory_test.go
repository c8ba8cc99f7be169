package throttle

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// modelMemory is the slow memory in a simple, slow form: all calls, each with its age.
type modelMemory []time.Duration

func (m modelMemory) count(at, window time.Duration) (n float64) {
	for _, then := range m {
		n += math.Exp(-(at - then).Seconds() / window.Seconds())
	}
	return n
}

// TestMemoryAgainstModel: counts are those of the model within one step of the decay, and the rate is
// that of steady calls after any time.
func TestMemoryAgainstModel(t *testing.T) {
	const window = 30 * time.Second
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 5))
		var m memory
		var model modelMemory
		at := time.Duration(0)
		for range 400 {
			gap := time.Duration(r.ExpFloat64() * float64(time.Second) * math.Pow(10, float64(r.IntN(3)-1)))
			at += gap
			m.pass(gap, window)
			m.requests++
			m.accepts++
			model = append(model, at)
			if got, want := m.requests, model.count(at, window); got < want*math.Exp(-1./steps) || got > want*math.Exp(1./steps)+1e-9 {
				t.Fatalf("seed %d: %v requests, want %v", seed, got, want)
			}
		}
	}
	for _, rate := range []float64{0.5, 10, 1000} {
		var m memory
		gap := time.Duration(float64(time.Second) / rate)
		for at := time.Duration(0); at < 100*time.Second; at += gap {
			m.pass(gap, window)
			m.accepts++
			if at > 60*time.Second && math.Abs(m.rate()/rate-1) > 0.08 {
				t.Fatalf("%v calls per second are %v after %v", rate, m.rate(), at)
			}
		}
	}
}
