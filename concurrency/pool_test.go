package concurrency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// pool drives a Limiter in explicit time: random arrivals at a pool of slots. A request is
// 20 ms in service, exponentially distributed.
type pool struct {
	l        *Limiter
	now      time.Time
	rng      *rand.Rand
	service  time.Duration
	fixed    bool          // every request takes service
	late     time.Duration // of each heartbeat beyond 10 ms
	holds    bool          // starts nothing while the limit is saturated
	beats    bool
	beat     time.Time
	patience time.Duration // requests end then, with outcome; 0: never
	deaf     time.Duration // requests have that long, but end only when they are served; 0: for ever
	outcome  spillway.Outcome
	queue    []busy
	busy     []busy
	rejected int
	served   int
}

type busy struct {
	ends   time.Time
	began  time.Time
	ticket *spillway.Ticket
}

func newPool(tb testing.TB, c Config) *pool {
	race.SkipOneGoroutine(tb)
	return &pool{l: must(tb, c), now: t0, rng: rand.New(rand.NewPCG(1, 2)), service: 20 * time.Millisecond}
}

// run offers so many requests per second, on average.
func (p *pool) run(d time.Duration, slots, perSecond int) {
	for end := p.now.Add(d); p.now.Before(end); p.now = p.now.Add(time.Millisecond) {
		p.heartbeat()
		p.finish()
		p.expire()
		for p.rng.Float64() < float64(perSecond)/(1000+float64(perSecond)) {
			p.send()
		}
		p.start(slots)
	}
}

// send offers a request and reports whether it was admitted.
func (p *pool) send() bool {
	if p.holds && p.l.Ask(p.now, "a").Saturated {
		p.rejected++
		return false
	}
	c := call("a")
	if p.deaf > 0 {
		c.Deadline = p.now.Add(p.deaf)
	}
	ticket, err := p.l.Admit(p.now, c)
	if err != nil {
		p.rejected++
		return false
	}
	p.queue = append(p.queue, busy{began: p.now, ticket: &ticket})
	return true
}

// start serves what waits while a slot is free.
func (p *pool) start(slots int) {
	for len(p.queue) > 0 && len(p.busy) < slots {
		took := p.service
		if !p.fixed {
			took = time.Duration(p.rng.ExpFloat64() * float64(p.service))
		}
		next := p.queue[0]
		next.ends = p.now.Add(took)
		p.busy, p.queue = append(p.busy, next), p.queue[1:]
	}
}

func (p *pool) heartbeat() {
	if p.beats && p.now.Sub(p.beat) >= 10*time.Millisecond+p.late {
		p.beat = p.now
		p.l.Beat(p.now, false)
	}
}

func (p *pool) finish() {
	p.busy = slices.DeleteFunc(p.busy, func(b busy) bool {
		if b.ends.After(p.now) {
			return false
		}
		p.served++
		o := spillway.OutcomeServed
		if p.deaf > 0 && p.now.Sub(b.began) > p.deaf {
			o = spillway.OutcomeTimedOut
		}
		b.ticket.Settle(p.now, o)
		return true
	})
}

// expire ends what has taken longer than its patience.
func (p *pool) expire() {
	if p.patience == 0 {
		return
	}
	late := func(b busy) bool {
		if p.now.Sub(b.began) < p.patience {
			return false
		}
		b.ticket.Settle(p.now, p.outcome)
		return true
	}
	p.queue, p.busy = slices.DeleteFunc(p.queue, late), slices.DeleteFunc(p.busy, late)
}

func (p *pool) state() KeyStats { return p.l.Stats(p.now).Tightest() }

// A quiet time before an overload is no throughput: the first limit is what the pool can do.
func TestOverloadAfterQuiet(t *testing.T) {
	const slots, capacity = 8, 400 // per second
	for _, fixed := range []bool{true, false} {
		for _, quiet := range []int{0, 1, 5, 20, 50, 100, 200} { // per second
			for seed := range uint64(5) {
				p := newPool(t, Config{})
				p.fixed, p.rng = fixed, rand.New(rand.NewPCG(seed, 3))
				p.run(5*time.Second, slots, quiet)
				p.served = 0
				least := math.Inf(1)
				for range 50 {
					p.run(100*time.Millisecond, slots, 3*capacity)
					if s := p.state(); s.State == Limiting {
						least = min(least, s.Limit)
					}
				}
				if p.served < 5*capacity*8/10 || least < slots/2 {
					t.Errorf("fixed %v, %d per second before, seed %d: %d served of %d, least limit %.1f", fixed, quiet, seed, p.served, 5*capacity, least)
				}
			}
		}
	}
}
