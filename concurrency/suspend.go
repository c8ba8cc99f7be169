package concurrency

import (
	"time"

	"github.com/seed90641741/spillway"
)

// Suspend implements [spillway.Suspender]; use [spillway.Ticket.Suspend].
func (l *Limiter) Suspend(now time.Time, t spillway.Ticket) spillway.Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records.of(&t)
	if r == nil {
		return t
	}
	if t.Suspended++; t.Suspended == 1 {
		l.advance(now)
		l.shift(r, -1)
		r.began, r.suspended = l.at-r.began, true
	}
	return t
}

// Resume implements [spillway.Suspender]; use [spillway.Ticket.Resume].
func (l *Limiter) Resume(now time.Time, t spillway.Ticket) spillway.Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records.of(&t)
	if r == nil {
		return t
	}
	if t.Suspended--; t.Suspended == 0 {
		l.resume(now, r)
	}
	return t
}

// Answer implements [spillway.Witness]; use [spillway.Ticket.Answer].
func (l *Limiter) Answer(now time.Time, t spillway.Ticket) { l.witness(now, &t, true) }

// Leave implements [spillway.Witness]; use [spillway.Ticket.Leave].
func (l *Limiter) Leave(now time.Time, t spillway.Ticket) { l.witness(now, &t, false) }

// witness records that the answer to a request in flight has begun, or that its client has left.
func (l *Limiter) witness(now time.Time, t *spillway.Ticket, answer bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.records.of(t); r != nil && !r.heard {
		l.advance(now)
		l.moveOn(int(r.slot))
		worked := l.at - r.began
		if r.suspended {
			worked = r.began
		}
		l.hear(r, answer, worked)
	}
}

// resume counts a request as working again. Its start moves later by the time of its suspension.
func (l *Limiter) resume(now time.Time, r *record) {
	l.advance(now)
	r.began, r.suspended = l.at-r.began, false
	l.shift(r, 1)
}

// shift adds by, which is 1 or -1, to the number of working requests of the key of r.
func (l *Limiter) shift(r *record, by int) {
	l.moveOn(int(r.slot))
	k := &l.keys[r.slot]
	k.flight.add(r.began, by)
	l.count(k)
}
