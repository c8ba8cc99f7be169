package throttle

import "time"

// rarest is how many calls are made for a probe of a backend that goes on to accept nothing: the
// first probe takes one call, and each later one twice as many. A thousand clients of half a call per
// second then send a dead backend less than 20 % of their calls. A client of nine calls per second
// sends one probe per interval. A probe is due after two thirds of a Window at the latest: after a
// whole one the throttle forgets the outage.
const rarest = 9

// Calls that a task makes at once end together: if one is rejected here, its caller abandons the calls
// already sent, the probe too, and nothing is ever heard of the backend. So once every call sent was
// abandoned, a probe is a whole task: all calls within togetherFor, and at most mostTogether.
// A backend that is dead gets one call in a hundred, if its callers give up before a deadline.
const (
	togetherFor  = 10 * time.Millisecond
	mostTogether = 100
)

// together is what is sent with a probe.
type together struct {
	abandoned bool          // every call sent since the last outcome
	until     time.Duration // calls are sent with the last probe
	left      int           // and how many more
}

// begin takes in that a probe is sent.
func (g *together) begin(at time.Duration) {
	if g.abandoned {
		g.abandoned, g.until, g.left = false, at+togetherFor, mostTogether-1
	}
}

// take reports whether a call is sent with the last probe.
func (g *together) take(at time.Duration) bool {
	if g.left == 0 || at >= g.until {
		g.left = 0
		return false
	}
	g.left--
	return true
}

// probeDue reports whether a call at a time may be sent as a probe: while nothing is accepted, or nothing
// is heard of what is sent.
func (c *class) probeDue(at time.Duration) bool {
	waited := at - c.asked
	if c.limiter.phase != silent {
		waited = at - max(c.limiter.settled, c.probed)
		return c.together.abandoned && waited >= c.cfg.ProbeInterval
	}
	return waited >= c.cfg.ProbeInterval && (c.skipped+1 >= c.rarity || waited >= c.cfg.Window*2/3)
}

// take reports whether a call may be sent.
func (c *class) take(at time.Duration, u float64) bool {
	switch {
	case c.advises():
		return u >= c.probability()
	case c.released >= 1:
		c.released--
	case u >= c.probability() && c.credit >= 1:
		c.credit--
		return true
	case c.together.take(at):
	case c.probeDue(at):
		c.rarity, c.probed = min(2*max(1, c.rarity), rarest), at
		if c.together.begin(at); c.together.left > 0 {
			c.until.Store(0)
		}
	default:
		return false
	}
	c.probes++
	return true
}
