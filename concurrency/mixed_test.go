package concurrency

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// Some of the requests of a key need nothing of the pool: they find their answer in a cache. They hide
// the queue of the others neither after a quiet time nor from a cold start.
func TestQuickRequestsHideNoQueue(t *testing.T) {
	for _, share := range []float64{0.1, 0.3, 0.5, 0.8} {
		for _, load := range []float64{1.3, 2, 4, 8} {
			for _, quiet := range []time.Duration{0, 5 * time.Second} {
				if share*load > 0.9 {
					continue // TestLimitThatDoesNotPay
				}
				const seeds = 3
				served, queued := 0, 0
				for seed := range uint64(seeds) {
					p := overload(t, share, load, quiet, seed)
					served += p.served
					queued += len(p.queue)
					if s := p.state(); !s.Limiting() || math.IsInf(s.Limit, 1) {
						t.Errorf("%v quick, %v times, quiet for %v, seed %d: %v, limit %v", share, load, quiet, seed, s.State, s.Limit)
					}
				}
				most := seeds * 4 * mixedSlots
				if quiet == 0 {
					most *= 2 // the first limit may be larger, until the next probes
				}
				if served < seeds*5*mixedCapacity*9/10 || queued > most {
					t.Errorf("%v quick, %v times, quiet for %v: %d served, %d in the queue of the pool", share, load, quiet, served, queued)
				}
			}
		}
	}
}

// With 80 % from a cache, and four times as many others as the pool serves, 6,400 quick requests per second are answered without a limit.
// With one, 400 of the pool and four times as many quick ones would be.
func TestLimitThatDoesNotPay(t *testing.T) {
	for _, row := range []struct{ share, load float64 }{{0.5, 8}, {0.8, 2}, {0.8, 4}, {0.9, 2}, {0.9, 4}, {0.9, 8}} {
		for _, quiet := range []time.Duration{0, 5 * time.Second} {
			for seed := range uint64(3) {
				if p := overload(t, row.share, row.load, quiet, seed); p.rejected > 0 {
					t.Errorf("%+v, quiet for %v, seed %d: %d rejected: %+v", row, quiet, seed, p.rejected, p.state())
				}
			}
		}
	}
}

// A limit that paid is given up when the quick requests that it rejects become more than it serves.
func TestLimitThatPaysNoMore(t *testing.T) {
	p := overload(t, 0.8, 1.1, 0, 1)
	if s := p.state(); !s.Limiting() {
		t.Fatalf("at 1.1 times the capacity: %+v", s)
	}
	p.run(2*memory, mixedSlots, 4*mixedCapacity)
	p.rejected = 0
	p.run(5*time.Second, mixedSlots, 4*mixedCapacity)
	if p.rejected > 0 {
		t.Errorf("%d rejected: %+v", p.rejected, p.state())
	}
}

// A limit is given up when what it was for takes no longer than the quick requests did: nothing is left to measure it by.
func TestLimitOfWhatBecameQuick(t *testing.T) {
	for seed := range uint64(3) {
		p := overload(t, 0.5, 2, 0, seed)
		if s := p.state(); !s.Limiting() {
			t.Fatalf("seed %d: at twice the capacity: %+v", seed, s)
		}
		p.service, p.fixed = 5*time.Millisecond, true
		p.run(3*memory, math.MaxInt, 10*mixedCapacity)
		p.rejected = 0
		p.run(5*time.Second, math.MaxInt, 10*mixedCapacity)
		if p.rejected > 0 {
			t.Errorf("seed %d: %d of %d rejected by a backend without a queue: %+v", seed, p.rejected, 5*20*mixedCapacity, p.state())
		}
	}
}

const mixedSlots, mixedCapacity = 8, 400 // per second

// overload runs a pool for a quiet time, for 10 s with more than it serves, and for 5 s more, which count.
func overload(t *testing.T, share, load float64, quiet time.Duration, seed uint64) mixedPool {
	t.Helper()
	p := mixedPool{pool: newPool(t, Config{}), share: share}
	p.rng = rand.New(rand.NewPCG(seed, 7))
	p.run(quiet, mixedSlots, mixedCapacity*6/10)
	p.run(10*time.Second, mixedSlots, int(load*mixedCapacity))
	p.served, p.rejected = 0, 0
	p.run(5*time.Second, mixedSlots, int(load*mixedCapacity))
	return p
}

// And they are not taken for a queue themselves: nothing is rejected if the others wait for nothing.
func TestQuickRequestsAreNoQueue(t *testing.T) {
	for _, share := range []float64{0.3, 0.5, 0.8} {
		p := mixedPool{pool: newPool(t, Config{}), share: share}
		p.service = 200 * time.Millisecond
		for range 10 {
			p.run(3*time.Second, math.MaxInt, 200)
			p.run(3*time.Second, math.MaxInt, 600)
		}
		if p.rejected > 240 { // 1 %
			t.Errorf("%v quick: %d of 24000 rejected: %+v", share, p.rejected, p.state())
		}
	}
}

// A mixedPool is a pool with a cache: a share of the requests of a key takes 2 ms and no slot.
type mixedPool struct {
	*pool
	share float64
	quick []busy
}

func (p *mixedPool) run(d time.Duration, slots, perSecond int) {
	perTick := float64(perSecond) / 1000
	for end := p.now.Add(d); p.now.Before(end); p.now = p.now.Add(time.Millisecond) {
		p.finish()
		for len(p.quick) > 0 && !p.quick[0].ends.After(p.now) {
			p.quick[0].ticket.Settle(p.now, spillway.OutcomeServed)
			p.quick = p.quick[1:]
		}
		for gap := p.rng.ExpFloat64(); gap < perTick/(1-p.share); gap += p.rng.ExpFloat64() {
			if p.rng.Float64() >= p.share {
				p.send()
			} else if ticket, err := p.l.Admit(p.now, call("a")); err == nil {
				p.quick = append(p.quick, busy{ends: p.now.Add(2 * time.Millisecond), ticket: &ticket})
			} else {
				p.rejected++
			}
		}
		p.start(slots)
	}
}
