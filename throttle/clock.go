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

func (c *clock) since(now time.Time) time.Duration {
	base := c.base.Load()
	if base == nil {
		base = c.begin(now)
	}
	return now.Sub(*base) + time.Duration(c.skew.Load())
}

// begin returns the first time, which is one resolution before now: zero means never.
func (c *clock) begin(now time.Time) *time.Time {
	first := now.Add(-resolution)
	c.base.CompareAndSwap(nil, &first)
	return c.base.Load()
}

// read returns the time of a clock reading that was just made.
func (c *clock) read(now time.Time) time.Duration {
	at := c.since(now)
	latest := time.Duration(c.latest.Load())
	switch {
	case at >= latest+resolution:
		c.latest.CompareAndSwap(int64(latest), int64(at))
	case at < latest-stepBack:
		c.skew.Add(int64(latest - at))
		return latest
	}
	return at
}

// heard returns the time of an outcome. It may come with the time at which its call
// began, which is in the past.
func (c *clock) heard(now time.Time) time.Duration {
	at, latest := c.since(now), time.Duration(c.latest.Load())
	if at >= latest+resolution {
		c.latest.CompareAndSwap(int64(latest), int64(at))
	}
	return max(at, latest)
}
