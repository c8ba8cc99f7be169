package concurrency

import (
	"time"

	"github.com/seed90641741/spillway"
)

// Suspend implements [spillway.Suspender]; use [spillway.Ticket.Suspend].
func (l *Limiter) Suspend(now time.Time, t spillway.Ticket) spillway.Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Suspended++; t.Suspended == 1 {
		l.advance(now)
		began := time.Duration(t.Epoch)
		l.shift(t, began, -1)
		t.Epoch = uint64(l.at - began) // what it has worked
	}
	return t
}

// Resume implements [spillway.Suspender]; use [spillway.Ticket.Resume].
func (l *Limiter) Resume(now time.Time, t spillway.Ticket) spillway.Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Suspended--; t.Suspended == 0 {
		t = l.resume(now, t)
	}
	return t
}

// resume takes a request back into flight, as if it had begun later.
func (l *Limiter) resume(now time.Time, t spillway.Ticket) spillway.Ticket {
	l.advance(now)
	began := l.at - time.Duration(t.Epoch)
	l.shift(t, began, 1)
	t.Epoch = uint64(began)
	return t
}

func (l *Limiter) shift(t spillway.Ticket, began time.Duration, by int) {
	slot := slotOf(t.State)
	l.moveOn(slot)
	k := &l.keys[slot]
	k.flight.add(began, by)
	l.count(k)
}
