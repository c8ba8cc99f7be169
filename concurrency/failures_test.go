package concurrency

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// A backend without a queue fails at once for a second of every five, in 1 ms in place of about 40.
// Neither the failures nor the return to 40 ms are a queue: at most 1 % is rejected.
func TestFastFailuresAreNoQueue(t *testing.T) {
	race.SkipOneGoroutine(t)
	for seed := range uint64(5) {
		l, rng, rejected := must(t, Config{}), rand.New(rand.NewPCG(seed, 7)), 0
		type request struct {
			ends   time.Time
			ticket spillway.Ticket
			o      spillway.Outcome
		}
		var flying []request
		for ms := range 30_000 {
			now := t0.Add(time.Duration(ms) * time.Millisecond)
			left := flying[:0]
			for _, r := range flying {
				if r.ends.After(now) {
					left = append(left, r)
					continue
				}
				r.ticket.Settle(now, r.o)
			}
			flying = left
			for rng.Float64() < 2.0/3 { // 2 on average
				took, o := time.Duration(40e6*rng.ExpFloat64()), spillway.OutcomeServed
				if ms%5000 >= 4000 {
					took, o = time.Millisecond, spillway.OutcomeFailed
				}
				ticket, err := l.Admit(now, call("a"))
				if err != nil {
					rejected++
					continue
				}
				flying = append(flying, request{now.Add(took), ticket, o})
			}
		}
		if rejected > 600 {
			t.Errorf("seed %d: %d of about 60,000 rejected", seed, rejected)
		}
	}
}

// While a backend is down each request fails after a second. A probe then tells no base latency: ten seconds after the backend is back, the limit
// is about what it was. Otherwise it has room for a second of work, and each probe tries three quarters of that, ten seconds after the last. By
// chance the limit was removed during the outage, and is found from its latencies, in one run of four.
func TestLimitAfterAnOutage(t *testing.T) {
	high := 0
	for seed := range uint64(8) {
		p := newPool(t, Config{})
		p.rng = rand.New(rand.NewPCG(seed, 8))
		p.run(15*time.Second, 8, 600)
		if k := p.state(); !k.Limiting() {
			t.Fatalf("seed %d: %+v before the outage", seed, k)
		}
		p.fail(12*time.Second, 600)
		p.run(10*time.Second, 8, 600)
		if k := p.state(); k.State == Limiting && k.Limit > 48 || len(p.queue) > 48 {
			t.Logf("seed %d: ten seconds after an outage %d wait for the pool: %+v", seed, len(p.queue), k)
			high++
		}
	}
	if high > 2 {
		t.Errorf("in %d of 8 runs the limit is too high ten seconds after an outage, want 2 at most", high)
	}
}

// fail is run while the backend is down: what was admitted fails after a second.
func (p *pool) fail(d time.Duration, perSecond int) {
	for end := p.now.Add(d); p.now.Before(end); p.now = p.now.Add(time.Millisecond) {
		for p.rng.Float64() < float64(perSecond)/(1000+float64(perSecond)) {
			p.send()
		}
		for _, b := range p.queue {
			b.ends = p.now.Add(time.Second)
			p.busy = append(p.busy, b)
		}
		p.queue = nil
		for len(p.busy) > 0 && !p.busy[0].ends.After(p.now) {
			p.busy[0].ticket.Settle(p.now, spillway.OutcomeFailed)
			p.busy = p.busy[1:]
		}
	}
}
