package throttle

import (
	"sync/atomic"
	"time"
)

// stepBack is how far back a time must be before it is taken for a clock that was
// set, and not for a call that waited between reading the clock and getting here.
const stepBack = time.Second

// resolution is how exactly the latest time is kept, so that it is rarely written.
const resolution = time.Millisecond

// A clock turns times into durations since the first one, which never go back for
// long: after a step back it goes on from where it was.
type clock struct {
	base   atomic.Pointer[time.Time]
	skew   atomic.Int64
	latest atomic.Int64
}

// first returns the first time.
func (c *clock) first(now time.Time) *time.Time {
	if base := c.base.Load(); base != nil {
		return base
	}
	return c.begin(now)
}

func (c *clock) since(now time.Time) time.Duration {
	return now.Sub(*c.first(now)) + time.Duration(c.skew.Load())
}

// begin returns the first time, which is one resolution before now: zero means never.
func (c *clock) begin(now time.Time) *time.Time {
	first := now.Add(-resolution)
	c.base.CompareAndSwap(nil, &first)
	return c.base.Load()
}

// read returns the time of a clock reading that was just made.
func (c *clock) read(now time.Time) time.Duration {
	skew := c.skew.Load()
	at := now.Sub(*c.first(now)) + time.Duration(skew) // which is since, inlined
	latest := time.Duration(c.latest.Load())
	switch {
	case at >= latest+resolution:
		c.latest.CompareAndSwap(int64(latest), int64(at))
	case at < latest-stepBack:
		c.skew.CompareAndSwap(skew, skew+int64(latest-at)) // only the first call that sees a step adds it
		return latest
	}
	return at
}

// heard returns the time of an outcome. It may come with the time at which its call
// began, which is in the past.
func (c *clock) heard(now time.Time) time.Duration {
	at, latest := now.Sub(*c.first(now))+time.Duration(c.skew.Load()), time.Duration(c.latest.Load()) // likewise
	if at >= latest+resolution {
		c.latest.CompareAndSwap(int64(latest), int64(at))
	}
	return max(at, latest)
}
