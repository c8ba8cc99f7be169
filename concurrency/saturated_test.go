package concurrency

import (
	"testing"
	"time"
)

// A queue is found when there is a limit, and also while its base latency is measured again. The limit
// is saturated if the number that is working reaches the number in service at once.
func TestSaturated(t *testing.T) {
	for _, row := range []struct {
		state       State
		again       bool // after a limit
		working     int
		found, full bool
		work        float64
	}{
		{state: Open, working: 100, work: 1},
		{state: Open, again: true, working: 100, work: 1},
		{state: Draining, working: 100, work: 1},
		{state: Probing, working: 100, work: 1},
		{state: Probing, again: true, working: 8, found: true, full: true, work: 0.02},
		{state: Draining, again: true, working: 9, found: true, full: true, work: 0.02},
		{state: Limiting, working: 7, found: true, work: 0.02},
		{state: Limiting, working: 8, found: true, full: true, work: 0.02},
	} {
		l := newLimit(0, true)
		l.state, l.before.limiting, l.working = row.state, row.again, row.working
		l.rate, l.base = 400, 0.02
		l.latency.add(time.Second, 1, 0)
		if l.found() != row.found || l.full() != row.full || l.work() != row.work {
			t.Errorf("%+v: found %v, saturated %v, %v s", row, l.found(), l.full(), l.work())
		}
	}
}
