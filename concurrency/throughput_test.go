package concurrency

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A round with the evidence that began at half of the load shows too little. What ends while the
// queue drains shows the throughput: the first limit has it.
func TestFirstLimit(t *testing.T) {
	const slots, capacity = 8, 400 // per second
	for _, fixed := range []bool{true, false} {
		for _, times := range []int{5, 10} {
			for seed := range uint64(10) {
				p := newPool(t, Config{})
				p.fixed, p.rng = fixed, rand.New(rand.NewPCG(seed, 3))
				p.run(5*time.Second, slots, capacity/2)
				for p.state().State != Limiting {
					p.run(time.Millisecond, slots, times*capacity)
				}
				if s := p.state(); s.Throughput < 0.8*capacity || s.Limit < slots {
					t.Errorf("fixed %v, %d times, seed %d: first limit %.1f, throughput %.0f", fixed, times, seed, s.Limit, s.Throughput)
				}
			}
		}
	}
}

// A caller may start fewer than the limit allows, if more would wait for one another. The limit follows the
// backend all the same: their latency shows that they wait.
func TestCallerHoldsBack(t *testing.T) {
	const slots, capacity = 24, 1200 // per second
	for _, holds := range []bool{false, true} {
		for seed := range uint64(5) {
			p := newPool(t, Config{})
			p.rng = rand.New(rand.NewPCG(seed, 3))
			p.run(2*time.Second, slots, 3*capacity)
			p.holds = holds
			p.run(3*time.Second, slots/4, 3*capacity)
			if s := p.state(); s.State == Open || s.Throughput > 1.6*capacity/4 || s.Limit > slots {
				t.Errorf("holds back: %v, seed %d: %v, throughput %.0f, limit %.1f", holds, seed, s.State, s.Throughput, s.Limit)
			}
		}
	}
}

// Requests of the same length that began together end together. How many of these ends a round
// has does not change the throughput.
func TestThroughputOfBatches(t *testing.T) {
	const slots, capacity = 64, 3200 // per second
	for seed := range uint64(10) {
		p := newPool(t, Config{})
		p.fixed, p.rng = true, rand.New(rand.NewPCG(seed, 3))
		p.run(2*time.Second, slots, 10*capacity)
		least, most := p.state().Throughput, 0.0
		for range 500 {
			p.run(10*time.Millisecond, slots, 10*capacity)
			least, most = min(least, p.state().Throughput), max(most, p.state().Throughput)
		}
		if least < 0.75*capacity || most > 1.3*capacity {
			t.Errorf("seed %d: throughput %.0f to %.0f, want %d", seed, least, most, capacity)
		}
	}
}
