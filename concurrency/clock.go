package concurrency

import (
	"time"

	"github.com/seed90641741/spillway/internal/elapsed"
)

// late is how far the clock moves from one heartbeat to the next at most: their interval, and
// a wait that does not matter.
const late = 10*time.Millisecond + brief

// clock is the time in which this process ran. It stands still for times that go back, and while the process
// does not run: between two heartbeats it moves by at most late.
type clock struct {
	calls elapsed.Clock // the times of the calls, which may go back
	wall  time.Duration // the latest of them
	at    time.Duration // the clock

	beats    bool          // there are heartbeats
	beat     time.Duration // when the last one came, on the clock
	beatWall time.Duration // the same by the calls
	busy     bool          // the processors of this process are
	runs     float64       // share of the time that the clock runs
	stalls   minimum       // of seconds that it stood still, each below zero
	stood    time.Duration // when it last did
}

// advance moves the clock to the time of a call.
func (c *clock) advance(now time.Time) {
	wall := c.calls.See(now)
	if wall == c.wall {
		return
	}
	c.at += wall - c.wall
	c.wall = wall
	if stop := c.beat + late; c.beats && c.at > stop {
		c.at, c.stood = stop, stop
	}
}

// tick takes in a heartbeat.
func (c *clock) tick(busy bool) {
	if wall := c.wall - c.beatWall; c.beats && wall > 0 {
		c.runs += float64((float64(c.at-c.beat)/float64(wall) - c.runs) * (1.0 / 32))
		c.stalls.add(memory, c.at, -max(0, wall-late).Seconds())
	}
	c.beats, c.beat, c.beatWall, c.busy = true, c.at, c.wall, busy
}

// stall returns the seconds of the longest recent time that the clock stood still.
func (c *clock) stall() float64 { return -c.stalls.value() }

// starved reports whether the process lacks the processor now.
func (c *clock) starved() bool { return c.beats && c.wall-c.beatWall > late }

// Beat is a heartbeat: something calls it every 10 ms while requests are in flight. If it
// comes late, this process did not get the processor, and what its requests took longer
// says nothing of what they wait for: the clock of the Limiter stands still then. Without a
// first Beat, and after [Limiter.Rest], it never does. While busy, this process uses most
// of its processors: they are what its requests wait for, and no other queue is looked for.
//
// It reports whether nothing was answered for a second: then the Limiter wants to know of clients that leave
// ([spillway.Ticket.Leave]).
func (l *Limiter) Beat(now time.Time, busy bool) (silent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(now)
	l.tick(busy)
	return l.at-l.all.heard >= lasting && l.all.working >= round/2
}

// Rest says that no Beat comes until requests are in flight again.
func (l *Limiter) Rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beats, l.runs, l.busy = false, 1, false
}
