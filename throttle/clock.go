package throttle

import (
	"sync/atomic"
	"time"
)

// stepBack is how far a time must lie in the past to mean that the clock was set back. A time that
// is less old is of a call that waited after it had read the clock.
const stepBack = time.Second

// resolution is how exactly the latest time is kept. It is coarse, so that few calls write that
// time.
const resolution = time.Millisecond

// A clock turns times into durations since the first time that it was given. The durations never go
// back by more than stepBack: when the system clock is set back, they go on from the latest one.
type clock struct {
	base   atomic.Pointer[time.Time]
	skew   atomic.Int64
	latest atomic.Int64
}

// first returns base, the time from which the durations count. begin sets it for the first time.
func (c *clock) first(now time.Time) *time.Time {
	if base := c.base.Load(); base != nil {
		return base
	}
	return c.begin(now)
}

func (c *clock) since(now time.Time) time.Duration {
	return now.Sub(*c.first(now)) + time.Duration(c.skew.Load())
}

// begin sets base to one resolution before now, so that no time is at the duration 0, which means
// never. It returns base.
func (c *clock) begin(now time.Time) *time.Time {
	first := now.Add(-resolution)
	c.base.CompareAndSwap(nil, &first)
	return c.base.Load()
}

// read returns the duration for a time that was just read from the system clock.
func (c *clock) read(now time.Time) time.Duration {
	skew := c.skew.Load()
	at := now.Sub(*c.first(now)) + time.Duration(skew) // since, inlined
	latest := time.Duration(c.latest.Load())
	switch {
	case at >= latest+resolution:
		c.latest.CompareAndSwap(int64(latest), int64(at))
	case at < latest-stepBack:
		c.skew.CompareAndSwap(skew, skew+int64(latest-at)) // once for each step
		return latest
	}
	return at
}

// heard returns the duration for the time of an outcome. The caller may pass the time at which the
// call began instead, so a time in the past is no step of the clock: it counts as the latest time.
func (c *clock) heard(now time.Time) time.Duration {
	// The value of at is that of since, inlined.
	at, latest := now.Sub(*c.first(now))+time.Duration(c.skew.Load()), time.Duration(c.latest.Load())
	if at >= latest+resolution {
		c.latest.CompareAndSwap(int64(latest), int64(at))
	}
	return max(at, latest)
}
