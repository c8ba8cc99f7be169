package spillhttp

import (
	"sync/atomic"
	"time"
)

// A clock tells the time for less than [time.Now], which reads two clocks: it reads
// the monotonic one, and that on the wall once a second.
type clock struct{ last atomic.Pointer[time.Time] }

func (c *clock) now() time.Time {
	if last := c.last.Load(); last != nil {
		if passed := time.Since(*last); passed >= 0 && passed < time.Second {
			return last.Add(passed)
		}
	}
	now := time.Now()
	c.last.Store(&now)
	return now
}
