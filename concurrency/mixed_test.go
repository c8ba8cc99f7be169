package concurrency

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// Some of the requests of a key need nothing of the pool: they find their answer in a cache. They hide
// the queue of the others neither after a quiet time nor from a cold start.
func TestQuickRequestsHideNoQueue(t *testing.T) {
	const slots, capacity = 8, 400 // per second
	for _, row := range []struct{ share, load, most float64 }{
		{0.1, 1.3, 4}, {0.2, 1.3, 4}, {0.3, 1.3, 4}, {0.5, 1.3, 4},
		{0.1, 2, 4}, {0.2, 2, 4}, {0.3, 2, 4}, {0.5, 2, 4},
		{0.1, 4, 6}, {0.2, 4, 4}, {0.3, 4, 4}, // a first limit may be larger until the next probe
	} {
		for _, quiet := range []time.Duration{0, 5 * time.Second} {
			p := mixedPool{pool: newPool(t, Config{}), share: row.share}
			p.run(quiet, slots, capacity*6/10)
			p.run(10*time.Second, slots, int(row.load*capacity))
			p.served = 0
			p.run(5*time.Second, slots, int(row.load*capacity))
			s := p.state()
			if !s.Limiting() || math.IsInf(s.Limit, 1) || p.served < 5*capacity*9/10 || float64(len(p.queue)) > row.most*slots {
				t.Errorf("%+v, quiet for %v: %v, limit %.1f, %d served, %d in the queue of the pool", row, quiet, s.State, s.Limit, p.served, len(p.queue))
			}
		}
	}
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
	perTick := float64(perSecond) * p.share / (1 - p.share) / 1000
	for end := p.now.Add(d); p.now.Before(end); p.pool.run(time.Millisecond, slots, perSecond) {
		for len(p.quick) > 0 && !p.quick[0].ends.After(p.now) {
			p.quick[0].ticket.Settle(p.now, spillway.OutcomeServed)
			p.quick = p.quick[1:]
		}
		for due := perTick; p.rng.Float64() < due; due-- {
			if ticket, err := p.l.Admit(p.now, call("a")); err == nil {
				p.quick = append(p.quick, busy{p.now.Add(2 * time.Millisecond), &ticket})
			}
		}
	}
}
