package concurrency

import "time"

// late is how far the clock moves from one heartbeat to the next at most: their interval, and
// a wait that does not matter.
const late = 10*time.Millisecond + brief

// advance moves the clock. It stands still for times that go back, and while this process
// does not run: between two heartbeats it moves by at most late.
func (l *Limiter) advance(now time.Time) {
	wall := l.clock.See(now)
	if wall == l.wall {
		return
	}
	l.at += wall - l.wall
	l.wall = wall
	if l.beats {
		l.at = min(l.at, l.beat+late)
	}
}

// Beat is a heartbeat: something calls it every 10 ms while requests are in flight. If it
// comes late, this process did not get the processor, and what its requests took longer
// says nothing of what they wait for: the clock of the Limiter stands still then. Without a
// first Beat, and after [Limiter.Rest], it never does. While busy, this process uses most
// of its processors: they are what its requests wait for, and no other queue is looked for.
func (l *Limiter) Beat(now time.Time, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(now)
	if wall := l.wall - l.beatWall; l.beats && wall > 0 {
		l.runs += float64((float64(l.at-l.beat)/float64(wall) - l.runs) * (1.0 / 32))
		l.stalls.add(l.at, -max(0, wall-late).Seconds())
		if wall > late {
			l.stood = l.at
		}
	}
	l.beats, l.beat, l.beatWall, l.busy = true, l.at, l.wall, busy
}

// Rest says that no Beat comes until requests are in flight again.
func (l *Limiter) Rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beats, l.runs, l.busy = false, 1, false
}
