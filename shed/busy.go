package shed

import (
	"time"

	"github.com/seed90641741/spillway"
)

// seeProcessors observes, at an arrival, whether a processor is free for it. If none is, that says
// nothing yet: what keeps them busy is seen when waiters are let in.
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

// bursts reports whether no overload of the processors stands. One does if waiters were let in at
// free processors for 100 ms, and others still waited. Nothing is let in while no processor is
// free: what keeps them busy then are not the requests, and to reject these would relieve nothing.
func (s *Shedder) bursts() bool { return s.busy.lasts < burst }

// stands reports whether the overload lasts in which requests of a queue were rejected. The signals of
// the processors and of the limit say so. That of a limit is zero as soon as the limit is free, also
// for a moment between two waves of requests: so the last rejection must be 100 ms ago as well.
func (s *Shedder) stands(q *queue) bool {
	return !s.bursts() || q.full.lasts > 0 || s.at-q.byLimit < burst
}

// bound bounds the wait for a processor: by MaxWait if an overload stands, else by 1 s.
func (s *Shedder) bound(a *arrival, call *spillway.Call, c *Config) {
	switch {
	case a.queue.limited:
	case !s.bursts() || c.MaxWait > longest:
		a.atMost(c.MaxWait, byMaxWait)
	case call.Deadline.IsZero():
		a.patience, a.by = longest, byBurst
	default:
		a.atMost(longest, byBurst)
	}
}

// burst is for how long waiters may be let in, and others wait for a processor, before that
// is overload. It is the interval of CoDel, after which a queue that did not drain is a
// standing one.
const burst = 100 * time.Millisecond

// crowd is how many requests a processor takes in within a burst, at 100 µs each. It bounds how
// many wait: at half, 799 of 1,800 clients that connect at once to two processors are rejected.
const crowd = 1000

// longest is the maximum wait while no overload stands, where MaxWait is less. At half, handshakes
// of 600 ms in all lead to rejections; at double, requests wait for 2 s if handshakes never end.
const longest = time.Second
