package throttle

import "time"

// rarest is the greatest number of calls for each probe. While the backend accepts nothing, probes
// become rarer: at first each call may be a probe, and the number of calls for each probe doubles
// with each probe, up to rarest. So a thousand clients of half a call per second send a dead
// backend less than 20 % of their calls. Calls that are more frequent send one probe per
// ProbeInterval. After two thirds of a Window a probe is due in any case, as the throttle forgets
// the outage after a whole Window.
const rarest = 9

// Calls that a task makes at once end together: if one is rejected here, the caller abandons the
// calls already sent. If the probe is among them, it never has a result. So when every call sent
// since the last outcome was abandoned, a probe is all calls within togetherFor, at most
// mostTogether, which may be a whole task. A dead backend whose callers give up before a deadline
// gets one call in a hundred.
const (
	togetherFor  = 10 * time.Millisecond
	mostTogether = 100
)

// together decides which calls are sent along with a probe.
type together struct {
	abandoned bool          // whether every call sent since the last outcome was abandoned
	until     time.Duration // calls are sent along with the last probe until this time
	left      int           // the number of calls that may still be sent along
}

// begin notes that a probe is sent, and allows calls along with it if all calls were abandoned.
func (g *together) begin(at time.Duration) {
	if g.abandoned {
		g.abandoned, g.until, g.left = false, at+togetherFor, mostTogether-1
	}
}

// take reports whether a call is sent along with the last probe, and counts it.
func (g *together) take(at time.Duration) bool {
	if g.left == 0 || at >= g.until {
		g.left = 0
		return false
	}
	g.left--
	return true
}

// probeDue reports whether a call may be sent as a probe: while the backend accepts nothing, or
// while every call that is sent is abandoned.
func (c *class) probeDue(at time.Duration) bool {
	waited := at - c.asked
	if c.limiter.phase != silent {
		waited = at - max(c.limiter.settled, c.probed)
		return c.together.abandoned && waited >= c.cfg.ProbeInterval
	}
	return waited >= c.cfg.ProbeInterval && (c.skipped+1 >= c.rarity || waited >= c.cfg.Window*2/3)
}

// take reports whether a call may be sent, and takes it off the credit or counts it as a probe.
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
