package throttle

import "time"

// rarest is how many calls are made for a probe of a backend that goes on to accept nothing: the
// first probe takes one call, and each later one twice as many. A thousand clients of half a call per
// second then send a dead backend less than 20 % of their calls. A client of nine calls per second
// sends one probe per interval. A probe is due after two thirds of a Window at the latest: after a
// whole one the throttle forgets the outage.
const rarest = 9

// probeDue reports whether a call at a time may be sent as a probe.
func (c *class) probeDue(at time.Duration) bool {
	waited := at - c.asked
	return c.limiter.phase == silent && waited >= c.cfg.ProbeInterval && (c.skipped+1 >= c.rarity || waited >= c.cfg.Window*2/3)
}
