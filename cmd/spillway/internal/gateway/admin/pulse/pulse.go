// Package pulse measures how long a process lacks a processor.
package pulse

import (
	"sync/atomic"
	"time"
)

// Beat is the interval at which a pulse reads the clock. At 20 times per second the cost for
// an idle process is negligible.
const Beat = 50 * time.Millisecond

// A Pulse measures how long this process was runnable but did not run. The zero Pulse is
// ready for use.
type Pulse struct{ stalled atomic.Int64 }

// Beaten records the time between two readings of the clock. A delay up to a quarter of a
// Beat is not a stall: timers on a busy host are not more exact.
func (p *Pulse) Beaten(passed time.Duration) {
	if late := passed - Beat; late > Beat/4 {
		p.stalled.Add(int64(late))
	}
}

// Read returns how long the process did not run since the last read.
func (p *Pulse) Read() time.Duration { return time.Duration(p.stalled.Swap(0)) }
