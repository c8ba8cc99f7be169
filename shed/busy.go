package shed

import (
	"time"

	"github.com/seed90641741/spillway"
)

// seeProcessors observes, at an arrival, that a processor is free for it. If none is free, it
// observes nothing, because it does not know whether requests keep the processors busy, or
// something else. That shows when waiters are let in.
func (s *Shedder) seeProcessors(a *arrival) {
	if a.state.Runnable < s.processors && !a.behind {
		s.seeBusy(true)
	}
}

// seeBusy observes whether requests wait for a processor while others are let in. An overload is
// over after a tenth of a second in which none has to wait, however long it was.
func (s *Shedder) seeBusy(free bool) {
	s.busy.see(s.at, free, slice)
	s.busy.lasts = min(s.busy.lasts, 4*burst)
}

// bursts reports whether the processors have no standing overload, but at most a burst. An overload
// is standing if for 100 ms waiters were let in at free processors, and others still had to wait.
// While no processor is free, no waiter is let in. Then requests are not what keeps the processors
// busy, and rejecting them would not help.
func (s *Shedder) bursts() bool { return s.busy.lasts < burst }

// stands reports whether the overload that made a queue reject requests goes on. The signals of the
// processors and of the limit say so. The signal of a limit is zero as soon as the limit is free, also
// for a moment between two waves of requests: so it counts only 100 ms after the last rejection.
func (s *Shedder) stands(q *queue) bool {
	return !s.bursts() || q.full.lasts > 0 || s.at-q.byLimit < burst
}

// bound bounds the wait for a processor: by 1 s while there is no sign of an overload, and else by
// MaxWait. For a request with a deadline the first sign is enough, as it may be served elsewhere in
// time; without a deadline an overload must stand.
func (s *Shedder) bound(a *arrival, call *spillway.Call, c *Config) {
	switch {
	case a.queue.limited:
	case !s.bursts() || c.MaxWait > longest || s.busy.lasts > 0 && !call.Deadline.IsZero():
		a.atMost(c.MaxWait, byMaxWait)
	case call.Deadline.IsZero():
		a.patience, a.by = longest, byBurst
	default:
		a.atMost(longest, byBurst)
	}
}

// burst is the time after which waiting is an overload: waiters were let in, and others still wait
// for a processor. It is the interval of CoDel, after which a queue that did not drain is a
// standing one.
const burst = 100 * time.Millisecond

// crowd is how many requests a processor takes in within a burst, at 100 µs each. It bounds how
// many wait: at half, 799 of 1,800 clients that connect at once to two processors are rejected.
const crowd = 1000

// longest is the maximum wait while no overload stands, where MaxWait is less. At half, handshakes
// of 600 ms in all lead to rejections; at double, requests wait for 2 s if handshakes never end.
const longest = time.Second
