package ratelimit

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// A Limiter is a token bucket with a bounded queue. As a [spillway.Gate] it
// admits or rejects; with [Limiter.Reserve] it also lets callers wait. It is safe
// for concurrent use and must not be copied; make one with [New].
type Limiter struct {
	bucket   bucket
	admitted atomic.Uint64
	rejected atomic.Uint64

	mu    sync.Mutex // one Update at a time, and the queue
	stats Stats      // the counts of the queue; the others are filled in by Stats
}

// New returns a Limiter with a full bucket, or an error that names the field of
// c that is out of range.
func New(c Config) (*Limiter, error) {
	l := new(Limiter)
	if err := l.Update(c); err != nil {
		return nil, err
	}
	return l, nil
}

// Update changes the configuration of a Limiter in use, or returns an error that
// names the field that is out of range and changes nothing. The bucket stays as
// full as it is, as a share of its capacity. Callers that wait keep their
// time; later callers wait behind as many tokens as before, or
// behind the new QueueDepth if that is less.
func (l *Limiter) Update(c Config) error {
	t, err := c.terms()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucket.change(t)
	return nil
}

// Exempt reports whether c takes no token, and counts it if so. Ask before Admit
// or Reserve, and then ask those only if Exempt says no.
func (l *Limiter) Exempt(c Caller) bool {
	_, t := l.bucket.load()
	if !t.exempt.Match(c) {
		return false
	}
	l.mu.Lock()
	l.stats.ExemptedTotal++
	l.mu.Unlock()
	return true
}

// Admit takes a token, or rejects, without regard to the queue.
// It implements [spillway.Gate]. Settling the Ticket does nothing, whatever the
// outcome: the token was spent on letting the call in. Neither an admission nor a
// rejection allocates.
func (l *Limiter) Admit(now time.Time, call spillway.Call) (spillway.Ticket, error) {
	wait, t, ok := l.bucket.take(l.bucket.see(now), 0)
	if !ok {
		l.rejected.Add(1)
		return spillway.Ticket{}, t.rejection(wait)
	}
	l.admitted.Add(1)
	return spillway.Ticket{Criticality: call.Criticality}, nil
}

// Reserve takes a token now, or one that is still to come if fewer than
// Config.QueueDepth callers wait, or rejects. If the Reservation says to wait,
// [Reservation.End] must be called on it exactly once. Reserve never blocks, and
// allocates nothing.
func (l *Limiter) Reserve(now time.Time) (Reservation, error) { return l.ReserveBy(now, time.Time{}) }

// ReserveBy is Reserve for a call with a deadline: it rejects the call where the token is not due
// before. The zero deadline is none.
func (l *Limiter) ReserveBy(now, deadline time.Time) (Reservation, error) {
	most := time.Duration(math.MaxInt64)
	if !deadline.IsZero() {
		most = deadline.Sub(now) - 1
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.bucket.see(now)
	_, t := l.bucket.load()
	full := l.stats.Waiting >= t.depth
	if full {
		most = 0
	}
	wait, t, ok := l.bucket.take(at, max(0, most))
	switch {
	case !ok:
		l.rejected.Add(1)
		if !full {
			return Reservation{}, tooLate.At(100 * most.Seconds() / wait.Seconds())
		}
		return Reservation{}, t.rejection(wait)
	case wait <= 0:
		l.admitted.Add(1)
		return Reservation{admitted: true}, nil
	}
	l.stats.Waiting++
	l.stats.QueuedTotal++
	return Reservation{Wait: wait, limiter: l, start: at}, nil
}

// Reject returns the rejection that Reserve would return at the time now, and counts it. It
// returns nil, and neither takes a token nor counts, where the caller is exempt and where
// Reserve would admit the call or have it wait. Reject allocates nothing.
func (l *Limiter) Reject(now time.Time, from Caller) error {
	at := l.bucket.see(now)
	w, t := l.bucket.load()
	wait := w.debt(at) + t.interval - t.burst
	if wait <= 0 || t.exempt.Match(from) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stats.Waiting < t.depth {
		return nil
	}
	l.rejected.Add(1)
	return t.rejection(wait)
}

// A Reservation is a place in the queue of a [Limiter], or an admission if Wait
// is zero. It must not be copied once End may be called, and is not safe for
// concurrent use.
type Reservation struct {
	// Wait is how long to wait, from the time that was passed to Reserve, before
	// the call may go ahead.
	Wait time.Duration

	limiter  *Limiter // nil where nothing is left to end
	start    time.Duration
	admitted bool
}

// End leaves the queue at the time now, and reports whether the call may go
// ahead. Before Wait has passed it may not: the caller has given up, and its
// token goes back. Called again, End repeats its answer and does nothing else.
func (r *Reservation) End(now time.Time) bool {
	if l := r.limiter; l != nil {
		r.limiter = nil
		r.admitted = l.end(now, r.start, r.Wait)
	}
	return r.admitted
}

func (l *Limiter) end(now time.Time, start, wait time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endAt(l.bucket.see(now), start, wait)
}

// endAt is end at a time since the first one that was seen. The lock is held.
func (l *Limiter) endAt(at, start, wait time.Duration) bool {
	queued := at - start
	l.stats.Waiting--
	l.stats.TimeQueued += queued
	if queued < wait {
		l.bucket.giveBack(at)
		l.stats.AbandonedTotal++
		return false
	}
	l.admitted.Add(1)
	return true
}

// Stats says what a [Limiter] did and how it stands.
type Stats struct {
	AdmittedTotal  uint64 // let in, at once or after a wait
	RejectedTotal  uint64 // rejected
	ExemptedTotal  uint64 // let in without a token
	QueuedTotal    uint64 // told to wait
	AbandonedTotal uint64 // told to wait, and left before their turn

	// TimeQueued is how long the callers that left the queue were in it;
	// divided by Queued − Waiting it is the average.
	TimeQueued time.Duration
	// Waiting is how many are in the queue.
	Waiting int
	// Tokens is how many tokens there are, and Capacity how many there can be.
	// Tokens is negative while calls wait. Both are zero where there is no limit.
	Tokens, Capacity float64
}

// Stats returns what is known at the time now.
func (l *Limiter) Stats(now time.Time) Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.AdmittedTotal, s.RejectedTotal = l.admitted.Load(), l.rejected.Load()
	s.Tokens, s.Capacity = l.bucket.tokens(l.bucket.see(now))
	return s
}

var _ spillway.Gate = (*Limiter)(nil)
