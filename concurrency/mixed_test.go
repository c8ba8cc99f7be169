package concurrency

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// Of the requests of a key, 30 % need nothing of the pool: they find their answer in a cache. They hide
// the queue of the others neither after a quiet time nor from a cold start.
func TestQuickRequestsHideNoQueue(t *testing.T) {
	const slots, capacity = 8, 400 // per second
	for _, quiet := range []time.Duration{0, 5 * time.Second} {
		p := newPool(t, Config{})
		var quick []busy
		run := func(d time.Duration, perSecond int) {
			for end := p.now.Add(d); p.now.Before(end); {
				for len(quick) > 0 && !quick[0].ends.After(p.now) {
					quick[0].ticket.Settle(p.now, spillway.OutcomeServed)
					quick = quick[1:]
				}
				if p.rng.Float64() < float64(perSecond)*3/7/1000 {
					if ticket, err := p.l.Admit(p.now, call("a")); err == nil {
						quick = append(quick, busy{p.now.Add(2 * time.Millisecond), &ticket})
					}
				}
				p.run(time.Millisecond, slots, perSecond)
			}
		}
		run(quiet, capacity*6/10)
		run(10*time.Second, capacity*13/10)
		p.served = 0
		run(5*time.Second, capacity*13/10)
		if s := p.state(); !s.Limiting() || math.IsInf(s.Limit, 1) || p.served < 5*capacity*9/10 || len(p.queue) > 4*slots {
			t.Errorf("quiet for %v: %v, limit %.1f, %d served, %d in the queue of the pool", quiet, s.State, s.Limit, p.served, len(p.queue))
		}
	}
}
