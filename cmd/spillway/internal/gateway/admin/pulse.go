package admin

import (
	"sync/atomic"
	"time"
)

// beat is the interval at which a pulse reads the clock. At 20 times per second the cost for
// an idle process is negligible.
const beat = 50 * time.Millisecond

// A pulse measures how long this process was runnable but did not run. The zero pulse is
// ready for use.
type pulse struct{ stalled atomic.Int64 }

// beaten records the time between two readings of the clock. A delay up to a quarter of a
// beat is not a stall: timers on a busy host are not more exact.
func (p *pulse) beaten(passed time.Duration) {
	if late := passed - beat; late > beat/4 {
		p.stalled.Add(int64(late))
	}
}

// read returns how long the process did not run since the last read.
func (p *pulse) read() time.Duration { return time.Duration(p.stalled.Swap(0)) }
