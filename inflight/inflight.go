package inflight

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
)

// DefaultMaxRequests is the limit where none is configured.
const DefaultMaxRequests = 1024

const (
	one     = 1 << 32       // one request, in the upper half of the word
	noLimit = math.MaxInt32 // as a limit: cannot be reached
)

// Config configures a [Limiter]. The zero Config is valid.
type Config struct {
	// MaxRequests is the maximum number of requests in flight. Zero means 1024
	// ([DefaultMaxRequests]); negative means no limit. A lower value protects the backend
	// sooner and rejects more in a burst. To reject everything, which is 0 in xDS, use
	// [Limiter.SetMaxRequests].
	MaxRequests int
	// QueueDepth is the maximum number of callers of [Limiter.Acquire] that may wait at once.
	// A higher value rejects fewer in a burst, and makes callers wait longer: the last one
	// waits for about QueueDepth / MaxRequests times the duration of a request. Zero means the
	// value of MaxRequests, for a wait of one request; negative means that no caller waits. It
	// must be at most 2147483647.
	QueueDepth int
}

// limit returns what c asks for as a limit, or an error that names the field.
func (c Config) limit() (uint32, error) {
	switch {
	case c.QueueDepth > noLimit:
		return 0, invalid.Field("inflight", "QueueDepth", c.QueueDepth, "at most %d, or negative for no queue", noLimit)
	case c.MaxRequests == 0:
		return DefaultMaxRequests, nil
	case c.MaxRequests < 0:
		return noLimit, nil
	case c.MaxRequests > noLimit:
		return 0, invalid.Field("inflight", "MaxRequests", c.MaxRequests, "at most %d, or negative for no limit", noLimit)
	}
	return uint32(c.MaxRequests), nil
}

// A Limiter counts the requests in flight and rejects requests above a limit. It never admits
// above the limit in force at that instant, and neither a rejection nor a change of the limit
// disturbs the count. It is a [spillway.Gate]. Make one with [New]; it is safe for concurrent
// use and must not be copied.
type Limiter struct {
	_    [64]byte     // every request writes word; keep it on a cache line of its own
	word atomic.Int64 // count in the upper half, limit in the lower
	// queue begins with what every release reads.
	queue queue
	_     [64]byte

	// The fields below are used by rejections, limit changes and reports only.
	drops      atomic.Uint64 // all drops ever
	reported   atomic.Uint64 // drops handed out by TakeRejected
	surplus    atomic.Uint64
	rejections atomic.Pointer[rejections]
	change     sync.Mutex // of two limit changes, the later sets limit and rejections both
	origin     origin     // of the limit; with change locked

	classes *classes // nil: all are alike
	holds   holds
}

// origin says how a limit was set.
type origin struct {
	live       bool   // New, SetMaxRequests or Update has, at some time
	configured bool   // Configure has been called
	config     uint32 // with this, the last time
}

// New returns a Limiter with nothing in flight, which hands places out by class. It fails if
// config is not valid.
func New(config Config) (*Limiter, error) {
	limit, err := config.limit()
	if err != nil {
		return nil, err
	}
	l := &Limiter{classes: new(classes)}
	l.queue.depth = config.QueueDepth
	l.set(limit)
	l.origin.live = config.MaxRequests != 0
	return l, nil
}

// TryAcquire takes a place in flight and reports whether there was one. If so, the
// caller must call [Limiter.Release] exactly once; if not, a drop was counted. It belongs to
// no class: it takes any place that is free.
// TryAcquire, [Limiter.Acquire] and Release are for callers that settle by themselves; all
// others use [Limiter.Admit], whose Ticket cannot be settled twice.
func (l *Limiter) TryAcquire() bool {
	if l.acquire(0) || l.holds.sweep(sweepAtRejection) && l.acquire(0) {
		return true
	}
	l.drops.Add(1)
	return false
}

// acquire takes a place unless that would leave fewer than reserved of them.
func (l *Limiter) acquire(reserved uint32) bool {
	for {
		s := l.word.Load()
		if full(s, reserved) {
			return false
		}
		if l.word.CompareAndSwap(s, s+one) {
			return true
		}
	}
}

// Release gives back a place taken by [Limiter.Acquire] or [Limiter.TryAcquire]. If a caller
// waits for one, that caller gets it. If nothing is in flight
// it changes nothing and counts the mistake in [Stats.SurplusTotal]; otherwise a
// Release too many gives away the place of another request, which no count can
// tell.
func (l *Limiter) Release() {
	if l.queue.waiting.Load() > 0 && l.handOver() {
		return
	}
	if l.word.Add(-one) < 0 {
		l.takeBack()
	}
	if l.queue.waiting.Load() > 0 {
		l.wake()
	}
}

// takeBack undoes a Release that found nothing in flight. While the word is
// negative nothing is admitted, so any other Release that makes it negative has found
// nothing in flight either and takes back its own.
func (l *Limiter) takeBack() {
	l.word.Add(one)
	l.surplus.Add(1)
}

// Admit takes a slot at the time now, which is released when the Ticket is settled, or returns
// a *[spillway.RejectedError]. Neither allocates. A Limiter made by [New] reserves slots for
// classes above the call's; one of a [Registry] does not, as in A32, and ignores both
// arguments. Admit implements [spillway.Gate]. The rejection names the limit that was
// exceeded. It is made when the limit is set, so its Level is the limit, even if more requests
// are in flight after the limit was lowered.
func (l *Limiter) Admit(now time.Time, call spillway.Call) (spillway.Ticket, error) {
	if l.classes == nil {
		if !l.acquire(0) && !(l.holds.sweep(sweepAtRejection) && l.acquire(0)) {
			return spillway.Ticket{}, l.Reject()
		}
		return spillway.Ticket{By: l, Criticality: call.Criticality}, nil
	}
	at, class := now.UnixNano(), call.Criticality.Index()
	if !l.acquireFor(at, class) && !(l.holds.sweep(sweepAtRejection) && l.acquireFor(at, class)) {
		return spillway.Ticket{}, l.reject(at, class)
	}
	l.classes.took(at, class)
	return spillway.Ticket{By: l, Criticality: call.Criticality}, nil
}

func (l *Limiter) acquireFor(at int64, class int) bool {
	return l.acquire(l.classes.reserved(at, class, l.word.Load()))
}

// reject counts a drop of a class and returns the rejection.
func (l *Limiter) reject(at int64, class int) error {
	l.drops.Add(1)
	l.classes.missed(at, class, uint32(l.word.Load()))
	if l.Full() {
		return &l.rejections.Load().full
	}
	return &l.rejections.Load().reserved
}

// Settle implements [spillway.Settler]: it releases, whatever the outcome was.
// It is called by [spillway.Ticket.Settle] only.
func (l *Limiter) Settle(_ time.Time, t spillway.Ticket, _ spillway.Outcome) {
	if l.classes != nil {
		l.classes.held[t.Criticality.Index()].Add(-1)
	}
	l.Release()
}

// Full reports whether a request would be rejected now. It changes and reserves nothing: call
// TryAcquire or Admit to be admitted. It lets a caller reject, with [Limiter.Reject], before
// it spends work on choosing an endpoint.
func (l *Limiter) Full() bool {
	return full(l.word.Load(), 0) && !(l.holds.sweep(sweepAtRejection) && !full(l.word.Load(), 0))
}

// Reject counts a rejection and returns the one that Admit would return.
func (l *Limiter) Reject() error {
	l.drops.Add(1)
	return &l.rejections.Load().full
}

// SetMaxRequests changes the limit to n at once, with the values of xDS: 0 rejects every
// request; math.MaxInt32 and above, such as math.MaxUint32, turn the limit off. The count is
// kept: requests above a lowered limit run to their end, and nothing is admitted before the
// count is below it.
func (l *Limiter) SetMaxRequests(n uint32) {
	l.change.Lock()
	defer l.change.Unlock()
	l.origin.live = true
	l.set(n)
}

// Configure changes the limit to n, as [Limiter.SetMaxRequests] does, if n differs from the n
// of the last call of Configure. It is for configurations that are read more than once, such
// as the service config of each channel to a cluster, which is read again when a channel wakes
// from idle. The first call changes nothing if a limit was set at run time before. So a limit
// that was set at run time stays until another one is set, or the configuration changes.
func (l *Limiter) Configure(n uint32) {
	l.change.Lock()
	defer l.change.Unlock()
	old := l.origin
	l.origin.configured, l.origin.config = true, n
	if old.configured && old.config != n || !old.configured && !old.live {
		l.set(n)
	}
}

// Configured reports whether a limit was ever set or configured. If not, it is
// [DefaultMaxRequests].
func (l *Limiter) Configured() bool {
	l.change.Lock()
	defer l.change.Unlock()
	return l.origin.live || l.origin.configured
}

// set changes the limit. The caller holds change, or is the only one that knows l.
func (l *Limiter) set(n uint32) {
	n = min(n, noLimit)
	l.rejections.Store(rejectionsAt(n))
	for {
		s := l.word.Load()
		if l.word.CompareAndSwap(s, s&^math.MaxUint32|int64(n)) {
			break
		}
	}
	if l.queue.waiting.Load() > 0 {
		l.wake()
	}
}

// Update puts config in force, as SetMaxRequests does. If config is not valid it
// changes nothing and returns an error.
func (l *Limiter) Update(config Config) error {
	limit, err := config.limit()
	if err != nil {
		return err
	}
	l.queue.mu.Lock()
	l.queue.depth = config.QueueDepth
	l.queue.mu.Unlock()
	l.SetMaxRequests(limit)
	return nil
}

// TakeRejected returns how many requests were rejected since the last call, for a
// load report. Each rejection is handed out once. If the report does not get through,
// give them back with [Limiter.PutBackRejected].
func (l *Limiter) TakeRejected() uint64 {
	for {
		before := l.reported.Load()
		now := l.drops.Load() // after reported, so that it is not less
		if l.reported.CompareAndSwap(before, now) {
			return now - before
		}
	}
}

// PutBackRejected gives back n rejections that TakeRejected returned, for the next report.
func (l *Limiter) PutBackRejected(n uint64) { l.reported.Add(-n) }

// Stats is a snapshot of a [Limiter].
type Stats struct {
	// MaxRequests is the limit; math.MaxInt32 means none.
	MaxRequests int
	// InFlight is how many requests are in flight. It is above MaxRequests
	// where the limit was lowered below it.
	InFlight int
	// Waiting is how many callers of Acquire wait for a place.
	Waiting int
	// RejectedTotal is how many requests were ever rejected. TakeRejected does not change it.
	RejectedTotal uint64
	// SurplusTotal is how often Release found nothing in flight. Above zero, some
	// caller releases more than it acquires.
	SurplusTotal uint64
}

// Stats returns a snapshot. MaxRequests and InFlight are of the same instant.
func (l *Limiter) Stats(now time.Time) Stats {
	l.holds.sweep(sweepAll)
	s := l.word.Load()
	return Stats{
		MaxRequests:   int(uint32(s)),
		InFlight:      int(max(s>>32, 0)), // below 0 for the instant of a surplus Release
		Waiting:       int(l.queue.waiting.Load()),
		RejectedTotal: l.drops.Load(),
		SurplusTotal:  l.surplus.Load(),
	}
}

// full reports whether the count in s has reached the limit in s, less what is reserved,
// which is at most the limit. A negative count is a very high one here.
func full(s int64, reserved uint32) bool {
	limit := uint32(s)
	return uint32(s>>32) >= limit-min(reserved, limit)
}

// rejections are the errors that all calls above a limit share.
type rejections struct{ full, reserved spillway.RejectedError }

func rejectionsAt(limit uint32) *rejections {
	e := spillway.RejectedError{
		Policy: "inflight",
		Reason: spillway.ReasonMaxInFlight,
		Level:  float64(limit),
		Limit:  float64(limit),
		Unit:   "requests in flight",
		Advice: "the backend has not answered what was sent before; send less, or raise MaxRequests (xDS: max_requests) if it can do more",
	}
	if limit == 0 {
		e.Advice = "MaxRequests (xDS: max_requests) was set to 0, which rejects every request"
	}
	r := &rejections{e, e}
	r.reserved.Advice = "the places that are left are kept for calls of higher criticality; send less, or raise MaxRequests (xDS: max_requests)"
	return r
}
