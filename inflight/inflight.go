package inflight

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
)

// DefaultMaxInFlight is the limit if none is configured.
const DefaultMaxInFlight = 1024

const (
	one     = 1 << 32       // one request in the upper half of the word
	noLimit = math.MaxInt32 // a limit that cannot be reached
)

// Config configures a [Limiter]. The zero Config is valid.
type Config struct {
	// MaxInFlight is the maximum number of requests in flight. Zero means 1024
	// ([DefaultMaxInFlight]); negative means no limit. A lower value protects the backend sooner
	// and rejects more in a burst. To reject everything, which is 0 in xDS, use
	// [Limiter.SetMaxInFlight].
	MaxInFlight int
	// QueueDepth is the maximum number of callers of [Limiter.Acquire] that may wait at once. A
	// higher value rejects fewer calls in a burst, and makes callers wait longer: the last one
	// waits for about QueueDepth / MaxInFlight times the duration of a request. Zero means the
	// value of MaxInFlight, so the last one waits for about one request; negative means that no
	// caller waits. It must be at most 2147483647.
	QueueDepth int
}

// limit returns the limit for c, or an error that names the field that is out of range.
func (c Config) limit() (uint32, error) {
	switch {
	case c.QueueDepth > noLimit:
		return 0, invalid.Field("inflight", "QueueDepth", c.QueueDepth, "at most %d, or negative for no queue", noLimit)
	case c.MaxInFlight == 0:
		return DefaultMaxInFlight, nil
	case c.MaxInFlight < 0:
		return noLimit, nil
	case c.MaxInFlight > noLimit:
		return 0, invalid.Field("inflight", "MaxInFlight", c.MaxInFlight, "at most %d, or negative for no limit", noLimit)
	}
	return uint32(c.MaxInFlight), nil
}

// A Limiter counts the requests in flight, and rejects requests above a limit. It never admits a
// request above the limit that is in force at that instant. Neither a rejection nor a change of the
// limit disturbs the count. It implements [spillway.Gate]. Make one with [New]. It is safe for
// concurrent use and must not be copied.
type Limiter struct {
	_    [64]byte     // each request writes word, so it has its own cache line
	word atomic.Int64 // count in the upper half, limit in the lower
	// The first field of queue is read by each release, together with word.
	queue queue
	_     [64]byte

	// The fields below are used by rejections, limit changes and reports only.
	drops      atomic.Uint64 // rejections since the start
	reported   atomic.Uint64 // rejections that TakeRejected has returned
	surplus    atomic.Uint64
	rejections atomic.Pointer[rejections]
	change     sync.Mutex // held while a change sets both limit and rejections
	origin     origin     // of the limit; guarded by change

	classes *classes // nil: the limiter ignores classes
	holds   holds
}

// origin says how the limit was set.
type origin struct {
	live       bool   // New, SetMaxInFlight or Update has set it, now or earlier
	configured bool   // Configure was called
	config     uint32 // argument of the last call of Configure
}

// New returns a Limiter with nothing in flight, which assigns slots by class. An error names the
// field of config that is out of range.
func New(config Config) (*Limiter, error) {
	limit, err := config.limit()
	if err != nil {
		return nil, err
	}
	l := &Limiter{classes: new(classes)}
	l.queue.depth = config.QueueDepth
	l.set(limit)
	l.origin.live = config.MaxInFlight != 0
	return l, nil
}

// TryAcquire takes a slot if one is free, and reports whether it did. If so, the caller must call
// [Limiter.Release] exactly once; if not, TryAcquire has counted a rejection. It ignores classes.
//
// TryAcquire, [Limiter.Acquire] and Release are for callers that settle by themselves. All others
// use [Limiter.Admit], whose Ticket cannot be settled twice.
func (l *Limiter) TryAcquire() bool {
	if l.acquire(0) || l.holds.sweep(sweepAtRejection) && l.acquire(0) {
		return true
	}
	l.drops.Add(1)
	return false
}

// acquire takes a slot, unless fewer than reserved slots would be free after that.
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

// Release releases a slot that [Limiter.Acquire] or [Limiter.TryAcquire] has taken. If callers
// wait, one of them gets it. A Release too many while nothing is in flight changes nothing, and
// counts in [Stats.SurplusTotal]. While requests are in flight, it releases the slot of another
// request, and no count can show that.
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

// takeBack undoes a Release while nothing was in flight. While the word is negative nothing is
// admitted. So any other Release that makes it negative has found nothing in flight either, and
// undoes itself, too.
func (l *Limiter) takeBack() {
	l.word.Add(one)
	l.surplus.Add(1)
}

// Admit takes a slot at the time now, or returns a *[spillway.RejectedError]. Settling the Ticket
// releases the slot. Admit does not allocate. It implements [spillway.Gate]. A Limiter made by
// [New] keeps slots free for classes above that of the call. One of a [Registry] does not, as in
// A32, and ignores both arguments.
//
// The rejection names the limit that was reached. It is made when the limit is set, so its Level is
// the limit, even if more requests are in flight because the limit was lowered.
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

// reject counts a rejection for a class, and returns it.
func (l *Limiter) reject(at int64, class int) error {
	l.drops.Add(1)
	l.classes.missed(at, class, uint32(l.word.Load()))
	if l.Full() {
		return &l.rejections.Load().full
	}
	return &l.rejections.Load().reserved
}

// Settle implements [spillway.Settler]; use [spillway.Ticket.Settle]. It releases the slot,
// whatever the outcome is.
func (l *Limiter) Settle(_ time.Time, t spillway.Ticket, _ spillway.Outcome) {
	if l.classes != nil {
		l.classes.held[t.Criticality.Index()].Add(-1)
	}
	l.Release()
}

// Full reports whether a request would be rejected now. It admits nothing and keeps no slot: call
// TryAcquire or Admit for that. With Full a caller can reject ([Limiter.Reject]) before it spends
// work on choosing an endpoint.
func (l *Limiter) Full() bool {
	return full(l.word.Load(), 0) && !(l.holds.sweep(sweepAtRejection) && !full(l.word.Load(), 0))
}

// Reject counts a rejection, and returns the rejection that Admit would return.
func (l *Limiter) Reject() error {
	l.drops.Add(1)
	return &l.rejections.Load().full
}

// SetMaxInFlight changes the limit to n at once. The values are those of xDS: 0 rejects each
// request; math.MaxInt32 and above, such as math.MaxUint32, mean no limit. The count is kept:
// requests above a lowered limit run to their end, and nothing is admitted before the count is
// below the limit.
func (l *Limiter) SetMaxInFlight(n uint32) {
	l.change.Lock()
	defer l.change.Unlock()
	l.origin.live = true
	l.set(n)
}

// Configure changes the limit to n as [Limiter.SetMaxInFlight] does, but only if n differs from the
// last call of Configure. It is for configurations that are read several times, such as the service
// config of each channel to a cluster, which is read again when a channel leaves the idle state.
// The first call changes nothing if a limit was set at run time before. So a limit that was set at
// run time stays until another one is set, or until the configuration changes.
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
// [DefaultMaxInFlight].
func (l *Limiter) Configured() bool {
	l.change.Lock()
	defer l.change.Unlock()
	return l.origin.live || l.origin.configured
}

// set changes the limit. The caller holds l.change, or no other goroutine has l yet.
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

// Update changes the limit and the queue depth. An error names the field that is out of range, and
// nothing has changed then.
func (l *Limiter) Update(config Config) error {
	limit, err := config.limit()
	if err != nil {
		return err
	}
	l.queue.mu.Lock()
	l.queue.depth = config.QueueDepth
	l.queue.mu.Unlock()
	l.SetMaxInFlight(limit)
	return nil
}

// TakeRejected returns how many requests were rejected since the last call, for a load report. It
// returns each rejection once. If the report is lost, give them back with
// [Limiter.PutBackRejected].
func (l *Limiter) TakeRejected() uint64 {
	for {
		before := l.reported.Load()
		now := l.drops.Load() // read after reported, so now is not below before
		if l.reported.CompareAndSwap(before, now) {
			return now - before
		}
	}
}

// PutBackRejected gives back n rejections that TakeRejected returned, for the next report.
func (l *Limiter) PutBackRejected(n uint64) { l.reported.Add(-n) }

// Stats is the state of a [Limiter].
type Stats struct {
	// MaxInFlight is the limit; math.MaxInt32 means none.
	MaxInFlight int
	// InFlight is the number of requests in flight. It may be above MaxInFlight if the limit was
	// lowered.
	InFlight int
	// Waiting is the number of callers of Acquire that wait for a slot.
	Waiting int
	// RejectedTotal is the number of rejected requests since the start. TakeRejected does not
	// change it.
	RejectedTotal uint64
	// SurplusTotal is how often Release was called with nothing in flight. If it is above zero,
	// some caller releases more slots than it acquires.
	SurplusTotal uint64
}

// Stats returns the state of l. MaxInFlight and InFlight are from the same instant.
func (l *Limiter) Stats(now time.Time) Stats {
	l.holds.sweep(sweepAll)
	s := l.word.Load()
	return Stats{
		MaxInFlight:   int(uint32(s)),
		InFlight:      int(max(s>>32, 0)), // negative during a surplus Release
		Waiting:       int(l.queue.waiting.Load()),
		RejectedTotal: l.drops.Load(),
		SurplusTotal:  l.surplus.Load(),
	}
}

// full reports whether the count in s has reached the limit in s, minus reserved. A negative count
// is a very high one here.
func full(s int64, reserved uint32) bool {
	limit := uint32(s)
	return uint32(s>>32) >= limit-min(reserved, limit)
}

// rejections are the errors that all rejected calls share: for a limit that is reached, and for
// slots that are kept for higher classes.
type rejections struct{ full, reserved spillway.RejectedError }

func rejectionsAt(limit uint32) *rejections {
	e := spillway.RejectedError{
		Policy: "inflight",
		Reason: spillway.ReasonMaxInFlight,
		Level:  float64(limit),
		Limit:  float64(limit),
		Unit:   "requests in flight",
		Advice: "the backend has not answered what was sent before; send less, or raise MaxInFlight (xDS: max_requests) if it can do more",
	}
	if limit == 0 {
		e.Advice = "MaxInFlight (xDS: max_requests) was set to 0, which rejects every request"
	}
	r := &rejections{e, e}
	r.reserved.Advice = "the places that are left are kept for calls of higher criticality; send less, or raise MaxInFlight (xDS: max_requests)"
	return r
}
