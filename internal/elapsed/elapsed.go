// Package elapsed measures time for policies, which receive it as an argument.
package elapsed

import (
	"math"
	"time"
)

// A Clock turns times into durations since the first one. They never go back: a time
// before the latest one counts as the latest one. The zero Clock has seen no time. It is
// not safe for concurrent use.
type Clock struct {
	first  time.Time
	latest time.Duration
	seen   bool
}

// See takes note of a time, and returns the duration from the first time to the latest.
func (c *Clock) See(now time.Time) time.Duration {
	if !c.seen {
		c.first, c.seen = now, true
	}
	c.latest = max(c.latest, now.Sub(c.first))
	return c.latest
}

// Time returns the time at the duration d after the first time.
func (c *Clock) Time(d time.Duration) time.Time { return c.first.Add(d) }

// Weight returns the weight of a new value in an exponentially weighted moving average
// (EWMA) with the time constant tau, if so much time has passed since the last value.
func Weight(passed, tau time.Duration) float64 {
	return -math.Expm1(-float64(passed) / float64(tau))
}

// Trim returns 0 for a tiny v. An average that only falls ends in denormal numbers and never reaches 0, and
// these are slow to compute with.
func Trim(v float64) float64 {
	if v < 1e-9 {
		return 0
	}
	return v
}
