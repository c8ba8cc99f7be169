package sim

import (
	"cmp"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/throttle"
)

// active is what there is of a caller only while it calls, and for some time after:
// policies that know more than new ones. A throttle knows nothing once its window
// has passed, and a limiter when nothing is in flight.
type active struct {
	of       *policies
	limiter  *inflight.Limiter // nil while nothing is in flight
	throttle *throttle.Routes  // nil while the past is short, and has no rejection
	past     [short]int64      // when calls were accepted, and of which class
	known    int               // of past
	limited  time.Time         // when the in-flight limit was reached
	flying   int32             // attempts under way
	open     int32             // connections in use
	queue    queue[ref]        // for one
	used     int64             // when an attempt last ended
	listed   bool              // in policies.idle
}

// short is how many accepted calls a caller can have had without a throttle.
const short = 8

// policies makes and takes back what is active of the callers of an edge.
type policies struct {
	config    throttle.Config
	limit     inflight.Config
	keep      int64 // for which a throttle remembers
	idle      queue[idler]
	spare     []*active
	limiters  []*inflight.Limiter
	throttles []*throttle.Routes
}

// idler is a caller that may become idle.
type idler struct {
	at     int64
	caller int32
}

func (p *policies) configure(c egress.Config, random func() float64) {
	p.config = c.Throttle
	p.config.Rand = random
	p.limit = inflight.Config{MaxRequests: c.MaxRequests}
	window := cmp.Or(c.Throttle.Window, throttle.DefaultWindow)
	p.keep = int64(window + window/10) // until the last bucket has left the window
	if c.ThrottleMode == spillway.ModeOff {
		p.keep = 0
	}
}

// wake returns what is active of a caller that makes an attempt.
func (e *edge) wake(caller int32) *active {
	c, p := &e.clients[caller], &e.policies
	if c.active == nil {
		c.active = taken(&p.spare)
		c.active.of = p
	}
	if c.active.flying++; c.active.limiter == nil {
		c.active.limiter = p.limiter()
	}
	return c.active
}

// limiter returns one with nothing in flight.
func (p *policies) limiter() *inflight.Limiter {
	if len(p.limiters) > 0 {
		return taken(&p.limiters)
	}
	l, _ := inflight.New(p.limit) // was tried once
	return l
}

// taken takes one out of what is spare, or makes one.
func taken[T any](spare *[]*T) *T {
	if len(*spare) == 0 {
		return new(T)
	}
	return last(spare)
}

// rest notes that an attempt has ended, and takes back what knows nothing any more.
func (e *edge) rest(caller int32) {
	p, a := &e.policies, e.clients[caller].active
	a.used = e.now
	if a.flying--; a.flying == 0 {
		p.limiters = append(p.limiters, a.limiter)
		a.limiter = nil
	}
	if !a.listed {
		a.listed = true
		p.idle.push(idler{e.now + p.keep, caller})
	}
	for p.idle.n > 0 && p.idle.front().at <= e.now {
		e.retire(p.idle.oldest().caller)
	}
}

// forget takes back what is known to a caller that has no calls any more, as it is dead.
func (e *edge) forget(caller int32) {
	c := &e.clients[caller]
	c.bucket, c.connected = nil, 0
	if a := c.active; a != nil {
		*a = active{of: a.of, used: a.used, listed: a.listed}
	}
}

// retire takes back the policies of a caller, unless they were used meanwhile.
func (e *edge) retire(caller int32) {
	p, c := &e.policies, &e.clients[caller]
	a := c.active
	if a.flying > 0 || a.used+p.keep > e.now {
		p.idle.push(idler{max(a.used+p.keep, e.now+p.keep/8+1), caller})
		return
	}
	if a.throttle != nil {
		*a.throttle = throttle.Routes{}
		p.throttles = append(p.throttles, a.throttle)
	}
	*a = active{queue: a.queue}
	c.active = nil
	p.spare = append(p.spare, a)
}
