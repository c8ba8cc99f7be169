package throttle

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

// Probability is equation 21-1: the share of calls to reject after requests calls, when the
// backend has accepted accepts. It is at least 0 and less than 1 for counts that are not
// negative.
func Probability(requests, accepts, k float64) float64 {
	// The product is rounded, so that all machines decide alike: one that fused it with
	// the difference would reject calls that the others admit.
	return max(0, (requests-float64(k*accepts))/(requests+1))
}

// publish sets what is read without the lock.
func (c *class) publish() {
	gate := time.Duration(0)
	switch {
	case c.advice.until > 0:
	case c.state == StateClosed && c.fast.sent > 0:
		gate = watched
	case c.state == StateClosed:
		gate = open
	default:
		gate = c.asked + c.cfg.ProbeInterval
		if income := c.income(); c.state == StateThrottling && income > 0 {
			wait := (c.due - c.credit) / income
			gate = min(gate, c.now+time.Duration(max(0, min(wait, 3600))*float64(time.Second)))
		}
		c.refusal.Store(c.rejection())
	}
	if int64(gate) != c.gate.Load() {
		c.gate.Store(int64(gate))
	}
	switch limits := gate >= 0; {
	case c.limited == nil || limits == c.counted:
		return
	case limits:
		c.limited.Add(1)
	default:
		c.limited.Add(-1)
	}
	c.counted = !c.counted
}

// probability is the share of calls that are rejected.
func (c *class) probability() float64 {
	switch {
	case c.advises():
		return Probability(c.known())
	case c.state == StateProbing:
		return 1
	case c.state == StateThrottling:
		return Probability(c.slow.requests, c.slow.accepts, c.cfg.K)
	}
	return 0
}

func (c *class) rejection() *spillway.RejectedError {
	return rejections[c.criticality.Index()].At(100 * c.probability())
}

func (c *class) stats(at time.Duration) ClassStats {
	c.mu.Lock()
	defer c.unlock()
	c.roll(at)
	s := ClassStats{
		State:         c.state,
		Probability:   c.probability(),
		Limit:         math.Inf(1),
		Requests:      c.slow.requests,
		Accepts:       c.slow.accepts,
		RejectedTotal: c.rejected,
		ProbesTotal:   c.probed,
	}
	switch c.state {
	case StateThrottling:
		s.Limit = c.cfg.K * c.slow.rate()
	case StateProbing:
		s.Limit = 1 / c.cfg.ProbeInterval.Seconds()
	}
	return s
}
