// Package clock reads the time at less cost than [time.Now].
package clock

import (
	"sync/atomic"
	"time"
)

// A Clock reads the monotonic clock each time, and the wall clock once a second; [time.Now]
// reads both. The zero Clock is ready for use, and safe for concurrent use.
type Clock struct{ last atomic.Pointer[time.Time] }

// Now returns the time.
func (c *Clock) Now() time.Time {
	if last := c.last.Load(); last != nil {
		if passed := time.Since(*last); passed >= 0 && passed < time.Second {
			return last.Add(passed)
		}
	}
	now := time.Now()
	c.last.Store(&now)
	return now
}
