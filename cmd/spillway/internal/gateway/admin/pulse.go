package admin

import (
	"sync/atomic"
	"time"
)

// beat is how often a pulse looks at the clock. At 20 times per second it costs a process that
// is idle next to nothing.
const beat = 50 * time.Millisecond

// A pulse measures how long this process did not run although it was due. The zero pulse is
// ready for use.
type pulse struct{ stalled atomic.Int64 }

// beaten takes in the time between two looks at the clock. A quarter of a beat is no stall:
// timers are no more exact than that on a busy host.
func (p *pulse) beaten(passed time.Duration) {
	if late := passed - beat; late > beat/4 {
		p.stalled.Add(int64(late))
	}
}

// read returns how long it did not run since the last read.
func (p *pulse) read() time.Duration { return time.Duration(p.stalled.Swap(0)) }
