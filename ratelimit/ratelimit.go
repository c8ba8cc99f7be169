package ratelimit

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// A Limiter is a token bucket with a bounded queue. As a [spillway.Gate] it admits or rejects; with
// [Limiter.Reserve] callers can also wait. It is safe for concurrent use and must not be copied.
// Make one with [New].
type Limiter struct {
	bucket   bucket
	admitted atomic.Uint64
	rejected atomic.Uint64

	mu    sync.Mutex // guards the queue, and lets Updates run one at a time
	stats Stats      // counts of the queue; Stats fills in the others
}

// New returns a Limiter with a full bucket. An error names the field of c that is out of range.
func New(c Config) (*Limiter, error) {
	l := new(Limiter)
	if err := l.Update(c); err != nil {
		return nil, err
	}
	return l, nil
}

// Update changes the configuration of a Limiter in use. An error names the field that is out of
// range, and nothing has changed then. The tokens in the bucket stay the same share of its
// capacity. Callers that wait keep their time. Later callers wait behind as many tokens as before,
// or behind the new QueueDepth if that is less.
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

// Exempt reports whether c needs no token, and counts it if so. Call it first, and call Admit or
// Reserve only if it returns false.
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

// Admit takes a token, or rejects the call. It ignores the queue. It implements [spillway.Gate].
// Settling the Ticket does nothing, whatever the outcome: the admission has used the token. Neither
// an admission nor a rejection allocates.
func (l *Limiter) Admit(now time.Time, call spillway.Call) (spillway.Ticket, error) {
	wait, t, ok := l.bucket.take(l.bucket.see(now), 0)
	if !ok {
		l.rejected.Add(1)
		return spillway.Ticket{}, t.rejection(wait)
	}
	l.admitted.Add(1)
	return spillway.Ticket{Criticality: call.Criticality}, nil
}

// Reserve takes a token. If the bucket is empty, and fewer than Config.QueueDepth callers wait, it
// takes a future one, and the Reservation says how long to wait for it; otherwise it rejects. Call
// [Reservation.End] exactly once on a Reservation with a Wait. Reserve never blocks, and allocates
// nothing.
func (l *Limiter) Reserve(now time.Time) (Reservation, error) { return l.ReserveBy(now, time.Time{}) }

// ReserveBy is Reserve for a call with a deadline. It rejects the call if its token is not due
// before the deadline. The zero deadline means none.
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

// Observe is ReserveBy for a gate that only observes, whose calls go on at once. It returns the
// rejection that [Limiter.ReserveBy] would have returned, or nil. A call that would have waited
// takes a future token, so the debt of the bucket has the length of the queue. Use either Observe
// or the other methods with a Limiter, not both. Observe allocates nothing.
func (l *Limiter) Observe(now, deadline time.Time) error {
	at := l.bucket.see(now)
	_, t := l.bucket.load()
	most := time.Duration(t.depth) * t.interval
	late := !deadline.IsZero() && deadline.Sub(now)-1 < most
	if late {
		most = max(0, deadline.Sub(now)-1)
	}
	wait, t, ok := l.bucket.take(at, most)
	switch {
	case ok:
		l.admitted.Add(1)
		return nil
	case late && wait <= time.Duration(t.depth)*t.interval:
		l.rejected.Add(1)
		return tooLate.At(100 * most.Seconds() / wait.Seconds())
	default:
		l.rejected.Add(1)
		return t.rejection(wait)
	}
}

// Reject returns the rejection that Reserve would return at the time now, and counts it. If the
// caller is exempt, or Reserve would admit the call or let it wait, Reject returns nil, and neither
// takes a token nor counts anything. It allocates nothing.
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

// A Reservation is a position in the queue of a [Limiter], or an admission if Wait is zero. It must
// not be copied once End may be called, and is not safe for concurrent use.
type Reservation struct {
	// Wait is how long the call must wait, from the time that was passed to Reserve.
	Wait time.Duration

	limiter  *Limiter // nil if End has nothing to do
	start    time.Duration
	admitted bool
}

// End leaves the queue at the time now, and reports whether the call may proceed. Before Wait has
// passed it may not: the caller has given up, and End returns its token. Called again, End returns
// the same result and does nothing else.
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

// endAt does the same as end, at a time since the bucket's base. The caller holds l.mu.
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

// Stats is the state of a [Limiter], and what it has counted.
type Stats struct {
	AdmittedTotal  uint64 // admitted, at once or after a wait
	RejectedTotal  uint64
	ExemptedTotal  uint64 // admitted without a token
	QueuedTotal    uint64 // had to wait
	AbandonedTotal uint64 // had to wait, and gave up before they were admitted

	// TimeQueued is the sum of the times in the queue of all callers that have left it. Divided by
	// QueuedTotal − Waiting it is the mean.
	TimeQueued time.Duration
	// Waiting is the number of callers in the queue.
	Waiting int
	// Tokens is the number of tokens in the bucket, and Capacity its maximum. Tokens is negative
	// while callers wait. Both are zero if there is no limit.
	Tokens, Capacity float64
}

// Stats returns the state of l at the time now.
func (l *Limiter) Stats(now time.Time) Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.AdmittedTotal, s.RejectedTotal = l.admitted.Load(), l.rejected.Load()
	s.Tokens, s.Capacity = l.bucket.tokens(l.bucket.see(now))
	return s
}

var _ spillway.Gate = (*Limiter)(nil)
