// Package outage says which failures of a service that is asked many times per second are worth a
// line of a log: the first of an outage, one each minute that it lasts, and its end.
package outage

import (
	"strings"
	"sync"
	"time"
)

const (
	// least is how long a service that has answered must fail before it is worth a line: a board that
	// fails now and then must not fill the log.
	least = time.Second
	// pause is the shortest time between the first lines of two outages.
	pause = 5 * time.Second
	// repeat is the time between two lines of one outage.
	repeat = time.Minute
)

// A Watch knows whether a service answers. The zero Watch is ready for use. It is safe for concurrent use.
type Watch struct {
	mu       sync.Mutex
	answered bool      // once
	since    time.Time // when the outage began; zero: there is none
	logged   bool      // the outage has had a line
	last     time.Time // the last line of an outage
}

// Answered takes note of an answer. If an outage that had a line ends with it, it returns how long that was.
func (w *Watch) Answered(now time.Time) (outage time.Duration, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ended = w.logged; ended {
		outage = now.Sub(w.since)
	}
	w.answered, w.since, w.logged = true, time.Time{}, false
	return outage, ended
}

// Failed takes note of a failure. It reports whether to write a line, and whether the service has answered
// before.
func (w *Watch) Failed(now time.Time) (line, answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		w.since = now
	}
	wait := pause
	if w.logged {
		wait = repeat
	}
	if w.answered && now.Sub(w.since) < least || !w.last.IsZero() && now.Sub(w.last) < wait {
		return false, w.answered
	}
	w.last, w.logged = now, true
	return true, w.answered
}

// A Turn knows who leads. The zero Turn is ready for use. It is safe for concurrent use.
type Turn struct {
	mu     sync.Mutex
	leader string
	last   time.Time // the last line
}

// Changed takes note of the name of the leader, or "" if it is not known. It reports whether to write a
// line that another one leads than before: once a minute at most, as the name comes from outside.
func (t *Turn) Changed(now time.Time, leader string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if leader == "" || leader == t.leader {
		return false
	}
	first := t.leader == ""
	t.leader = strings.Clone(leader)
	if first || !t.last.IsZero() && now.Sub(t.last) < repeat {
		return false
	}
	t.last = now
	return true
}
