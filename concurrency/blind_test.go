package concurrency

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// limiting returns a limit that has found a queue behind 8 places of 20 ms.
func limiting() *limit {
	l := newLimit(20*time.Second, false)
	l.latency.reset(l.at, 0.02)
	l.base, l.rate, l.state = 0.02, 400, Limiting
	l.probed, l.sound, l.working = l.at, l.at, 16
	l.resize()
	return l
}

// serve has a request end each millisecond, as 1000 per second do; stops says that the clock stands still now and then.
func (l *limit) serve(d time.Duration, stops bool) {
	stood := l.at - memory
	for end := l.at + d; l.at < end; {
		l.advance(l.at + time.Millisecond)
		if stops && l.at%(10*time.Millisecond) == 0 {
			stood = l.at
		}
		l.held = l.at
		l.leave(&ending{began: l.at - 20*time.Millisecond, outcome: spillway.OutcomeServed, stood: stood}, l.working)
		l.decide(0, false)
	}
}

// While the clock stands still again and again, what is known of a limit does not move, unless that is so for a memory.
func TestNothingLearntWhileStopped(t *testing.T) {
	l := limiting()
	was := l.window
	l.serve(memory-time.Second, true)
	if l.state != Limiting || l.rate != 400 || l.base != 0.02 || l.window != was {
		t.Errorf("after 9 s: %v, throughput %v, base latency %v, limit %v", l.state, l.rate, l.base, l.window)
	}
	l.serve(2*time.Second, true)
	if l.rate < 900 {
		t.Errorf("after 11 s: throughput %v, want that of now, 1000", l.rate)
	}
	l = limiting()
	l.serve(time.Second, false)
	if l.rate < 900 {
		t.Errorf("without stops: throughput %v, want that of now, 1000", l.rate)
	}
}

// A probe tells nothing if the clock stood still, or if few requests ended because callers paused.
func TestProbeThatTellsNothing(t *testing.T) {
	for _, row := range []struct {
		name  string
		ended int
		stops bool
		base  float64
	}{
		{"all", 64, false, 0.015},
		{"stopped", 64, true, 0.02},
		{"few", 5, false, 0.02},
	} {
		l := limiting()
		l.working = 6
		l.try(16, 400, 6)
		l.measure()
		l.advance(l.at + 160*time.Millisecond)
		for range row.ended {
			l.end(spillway.OutcomeServed, 0)
		}
		if row.stops {
			l.stood = l.at
		}
		l.conclude()
		if l.state != Limiting || math.Abs(l.base-row.base) > 1e-6 {
			t.Errorf("%s: %v with a base latency of %v, want %v", row.name, l.state, l.base, row.base)
		}
	}
}

// While the clock stands still again and again, latencies are too short by no more than that. So the least of them falls from
// that of a backlog to that of now: a process that never has the processor for a second would see no queue.
func TestLeastLatencyWhileStopped(t *testing.T) {
	var l latency
	for range 4 * round {
		l.add(0, 0.4, 0.03)
	}
	for range 20 * round {
		l.add(0, 0.02, 0.03)
	}
	if least := l.least(); least < 0.02 || least > 0.051 {
		t.Errorf("least latency %v, want 0.02 and the stall of 0.03", least)
	}
}
