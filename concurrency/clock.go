package concurrency

import (
	"time"

	"github.com/seed90641741/spillway/internal/elapsed"
)

// late is the longest time from one heartbeat to the next in which the process counts as running:
// the interval of heartbeats, 10 ms, plus an ordinary delay.
const late = 10*time.Millisecond + brief

// clock measures the time in which this process ran. The clock stands still while the process does
// not run: from one heartbeat to the next it moves by at most late. It ignores times that go back.
type clock struct {
	calls elapsed.Clock // time of the calls, which never goes back
	wall  time.Duration // the time of the latest call, since the first call
	at    time.Duration // the time that this clock shows

	beats    bool          // heartbeats come; without them the clock never stands still
	beat     time.Duration // value of at, at the last heartbeat
	beatWall time.Duration // value of wall, at the last heartbeat
	busy     bool          // at the last heartbeat, most processors were in use
	runs     float64       // share of time in which the clock ran, 0 to 1: EWMA of 32 heartbeats
	// stalls has the recent stalls in seconds, negated: its minimum is the longest stall.
	stalls minimum
	stood  time.Duration // value of at, when the clock last stood still
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

// tick records a heartbeat: for what share of the time since the last one the clock ran, and how
// long it stood still.
func (c *clock) tick(busy bool) {
	if wall := c.wall - c.beatWall; c.beats && wall > 0 {
		c.runs += float64((float64(c.at-c.beat)/float64(wall) - c.runs) * (1.0 / 32))
		c.stalls.add(memory, c.at, -max(0, wall-late).Seconds())
	}
	c.beats, c.beat, c.beatWall, c.busy = true, c.at, c.wall, busy
}

// stall returns the length of the longest recent stall of the clock, in seconds.
func (c *clock) stall() float64 { return -c.stalls.value() }

// starved reports whether the process lacks the processor now: a heartbeat is overdue.
func (c *clock) starved() bool { return c.beats && c.wall-c.beatWall > late }

// Beat receives a heartbeat. The caller sends one every 10 ms while requests are in flight. If a
// heartbeat is late, this process did not get the processor. The latency of its requests is then no
// evidence of a queue, so the clock of the Limiter stands still. Before the first Beat, and after
// [Limiter.Rest], the clock never stands still. busy means that this process uses most of its
// processors: its requests wait for these, and the Limiter looks for no other queue.
//
// Beat reports whether at least 16 requests are at work and none was answered for a second. The
// Limiter then needs to learn of clients that leave: call [spillway.Ticket.Leave] for each.
func (l *Limiter) Beat(now time.Time, busy bool) (silent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(now)
	l.tick(busy)
	return l.at-l.all.heard >= lasting && l.all.working >= round/2
}

// Rest tells the Limiter that no heartbeat comes until requests are in flight again.
func (l *Limiter) Rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beats, l.runs, l.busy = false, 1, false
}
