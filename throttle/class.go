package throttle

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// conclusive is the evidence, as the logarithm of how unlikely a streak is, at
// which the past is no longer believed: 1 in 4096.
var conclusive = math.Log(4096)

// hardly is how many requests there are for one accept where there is hardly any.
const hardly = 200

// Probability is equation 21-1: the share of calls to refuse after requests
// calls of which the backend accepted accepts. It is at least 0 and less than 1
// for counts that are not negative.
func Probability(requests, accepts, k float64) float64 {
	// The product is rounded, so that all machines decide alike: one that fused it with
	// the difference would see a chance to refuse where there is none.
	return max(0, (requests-float64(k*accepts))/(requests+1))
}

// class is the throttle of one criticality.
type class struct {
	// gate is what Admit reads without the lock: the epoch, and in the lowest
	// bit whether anything might be refused at all. Written with the lock held.
	// The epoch counts the refusals heard of.
	gate atomic.Uint64

	mu       sync.Mutex
	cfg      Config
	window   window
	streak   streak
	asked    time.Time // when the backend was last asked, or last refused, while throttling
	owed     bool      // slow start: the next call goes past the equation
	rejected uint64    // refused here, ever
	probes   uint64    // let through past the equation, ever
	advice   advice
	advised  atomic.Bool // there is advice
}

// A streak is the accepts in a row since the last refusal.
type streak struct {
	accepts  float64
	evidence float64   // −ln of how likely it is that nothing has changed
	since    time.Time // the first accept
	slow     bool      // it began when hardly anything was accepted
	faded    time.Time // up to when refusals have faded
}

func (c *class) epoch() uint64 { return c.gate.Load() >> 1 }

func (c *class) throttling() bool { return c.gate.Load()&1 != 0 }

// setThrottling is called with the lock held.
func (c *class) setThrottling(on bool) {
	if g := c.gate.Load(); on != (g&1 != 0) {
		c.gate.Store(g ^ 1)
	}
}

// probability returns p for the window as it is.
func (c *class) probability() float64 {
	requests, accepts := c.known()
	if requests < float64(c.cfg.MinRequests) {
		return 0
	}
	return Probability(requests, accepts, c.cfg.K)
}

// admit decides on one call while the class is throttling. u is uniform in
// [0, 1). It returns the epoch for the ticket, or the probability with which
// the call was refused.
func (c *class) admit(now time.Time, u float64) (epoch uint64, refused float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window.advance(now)
	c.expire(now)
	p := c.probability()
	if p == 0 {
		c.setThrottling(false)
	}
	if u < p && !c.pass(now) {
		c.window.add(counts{rejected: 1})
		c.rejected++
		return 0, p
	}
	c.asked = now
	return c.epoch(), 0
}

// pass reports whether a call that the equation refuses is to go all the same:
// as a probe, or by slow start.
func (c *class) pass(now time.Time) bool {
	if due := now.Sub(c.asked) >= c.cfg.ProbeInterval; !(due && c.blind()) && !c.owed {
		return false
	}
	c.owed = false
	c.probes++
	return true
}

// blind reports whether the equation lets so few calls through that it learns next to
// nothing: there is no accept at all, or hardly any of late.
func (c *class) blind() bool {
	if c.advises() {
		return false
	}
	late := c.window.late()
	return c.window.sum.accepts == 0 || (late.accepts+1)*hardly <= late.requests()
}

// settle counts the outcome of a call that was admitted in the given epoch.
func (c *class) settle(now time.Time, epoch uint64, accepted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window.advance(now)
	c.expire(now)
	if !accepted {
		c.window.add(counts{refused: 1})
		c.streak, c.owed = streak{}, false
		if now.After(c.asked) { // it may be when the call began
			c.asked = now
		}
		c.gate.Add(2)
		c.setThrottling(c.probability() > 0)
		return
	}
	if c.throttling() && epoch == c.epoch() {
		c.extend(now)
	}
	c.window.add(counts{accepts: 1})
}

// extend adds an accepted call to the streak, and acts on it.
func (c *class) extend(now time.Time) {
	s, sum := &c.streak, c.window.sum
	if s.accepts == 0 {
		s.since, s.slow = now, c.blind()
	}
	s.accepts++
	seen := (sum.accepts + 1) / (sum.accepts + sum.refused + 2)
	s.evidence -= math.Log(min(seen, 1/c.cfg.K))
	proven := s.evidence >= conclusive && now.Sub(s.since) >= c.cfg.ProbeInterval
	if proven {
		c.forget(now)
	}
	c.owed = proven || s.slow || s.accepts > sum.accepts
}

// forget lets refusals fade for the time since it last did. Steps of less than a
// fraction of the interval wait for the next accept, as each walks all buckets.
func (c *class) forget(now time.Time) {
	if c.streak.faded.IsZero() {
		c.streak.faded = now
	}
	step := now.Sub(c.streak.faded)
	if step < c.cfg.ProbeInterval/32 {
		return
	}
	c.window.fade(math.Exp(-float64(step) / float64(c.cfg.ProbeInterval)))
	c.streak.faded = now
}

// configure takes a new configuration. A changed window starts empty.
func (c *class) configure(cfg Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.Window != cfg.Window {
		c.window = window{width: cfg.Window / buckets}
		c.streak, c.owed = streak{}, false
		c.gate.Store((c.epoch() + 1) << 1)
	}
	c.cfg = cfg
}

func (c *class) stats(now time.Time) ClassStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window.advance(now)
	c.expire(now)
	return ClassStats{
		Probability:   c.probability(),
		Requests:      c.window.sum.requests(),
		Accepts:       c.window.sum.accepts,
		RejectedTotal: c.rejected,
		ProbesTotal:   c.probes,
	}
}

var _ spillway.Gate = (*Throttle)(nil)
