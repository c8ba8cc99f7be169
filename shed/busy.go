package shed

import "time"

// seeProcessors observes at an arrival whether a processor is free. That one is busy says nothing:
// with what, is seen when waiters are let in.
func (s *Shedder) seeProcessors(a *arrival) {
	free := a.state.Runnable < s.processors
	if free || s.queues[0].n == 0 {
		s.stall.end(s.at)
	}
	if free && !a.behind {
		s.busy.see(s.at, true, slice)
	}
}

// bursts reports whether no overload of the processors stands. One does if waiters were let in at
// free processors for 100 ms, and others still waited. Nothing is let in while no processor is
// free: what keeps them busy then are not the requests, and to reject these would relieve nothing.
func (s *Shedder) bursts() bool { return s.busy.lasts < burst }

// burst is for how long waiters may be let in, and others wait for a processor, before that
// is overload. It is the interval of CoDel, after which a queue that did not drain is a
// standing one.
const burst = 100 * time.Millisecond

// crowd is how many requests a processor takes in within a burst, at 100 µs each. It bounds how
// many wait: at half, 799 of 1,800 clients that connect at once to two processors are rejected.
const crowd = 1000

// longest is the maximum wait while no processor is free. At half, handshakes of 600 ms in all lead
// to rejections; at double, requests wait for 2 s if they never end.
const longest = time.Second

// stall is the time in which requests wait and no processor is free, without the first time slice of each.
type stall struct{ free, lasted time.Duration }

// until returns the sum up to a time.
func (s *stall) until(at time.Duration) time.Duration { return s.lasted + max(0, at-s.free-slice) }

// end notes that a processor is free, or that no request waits.
func (s *stall) end(at time.Duration) { s.lasted, s.free = s.until(at), at }
