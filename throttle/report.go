package throttle

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// count adds the class to limited when it begins to limit calls, and removes it when it ends. The
// caller holds the lock.
func (c *class) count() {
	limits := c.limits()
	if c.limited == nil || limits == c.counted {
		return
	}
	if c.counted = limits; limits {
		c.limited.Add(1)
		return
	}
	c.limited.Add(-1)
}

// configure sets the configuration. If Window changes, the class forgets everything.
func (c *class) configure(cfg Config, criticality spillway.Criticality, limited *atomic.Int32) {
	c.mu.Lock()
	defer c.unlock()
	c.criticality, c.limited = criticality, limited
	if c.cfg.Window != cfg.Window {
		c.forget(cfg.Window)
	}
	c.cfg = cfg
}

// forget ends the limit and empties the window, whose buckets cover width in total. The caller
// holds the lock.
func (c *class) forget(width time.Duration) {
	c.window = window{width: width / buckets}
	c.limiter = limiter{}
	c.share.Store(math.Float64bits(noLimit))
	c.change.state = StateClosed
}

func (c *class) stats(at time.Duration) ClassStats {
	c.mu.Lock()
	defer c.unlock()
	c.roll(at)
	s := ClassStats{
		State:         c.change.state,
		Probability:   max(0, c.probability()),
		Limit:         math.Inf(1),
		Requests:      c.window.sum.requests(),
		Accepts:       c.window.sum.accepts,
		RejectedTotal: c.rejected,
		ProbesTotal:   c.probes,
	}
	if c.limiter.phase != open {
		s.Limit = c.limiter.limit
	}
	return s
}
