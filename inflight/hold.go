package inflight

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// A Hold keeps a slot for an answer that continues after its call, such as a streamed body. It
// keeps the slot until End or until its context has ended, whichever is first, so a forgotten
// answer does not keep its slot. The zero Hold is ready for Begin. It must not be copied. Its
// methods are safe for concurrent use.
//
// Watching a context would cost more allocations and time than all other policies together, so no
// goroutine waits for its end. Instead the limiter checks the contexts when it matters: before it
// rejects, and in Stats. Each new Hold checks the two that were not checked for longest, so that
// forgotten ones do not add up.
type Hold struct {
	ctx    context.Context //nolint:containedctx // when it ends, the Hold ends
	ticket spillway.Ticket
	after  func()
	given  atomic.Bool

	of         *holds // nil if the context cannot end
	prev, next *Hold  // neighbors in the ring; guarded by of.mu
}

// Begin takes over the slot of t, a ticket of the limiter l or of a gate around l. End calls after,
// if it is not nil.
func (h *Hold) Begin(ctx context.Context, t spillway.Ticket, l *Limiter, after func()) {
	h.ctx, h.ticket, h.after = ctx, t, after
	if t.By != nil && l != nil && ctx.Done() != nil {
		h.of = &l.holds
		l.holds.sweep(sweepAtBegin)
		l.holds.add(h)
	}
}

// End releases the slot, unless it was released before. It may be called again.
func (h *Hold) End() {
	h.GiveBack()
	if h.after != nil {
		h.after()
	}
}

// GiveBack releases the slot as End does, but does not call after. It is for an answer that is kept
// for a while.
func (h *Hold) GiveBack() {
	if !h.given.CompareAndSwap(false, true) {
		return
	}
	if h.of != nil {
		h.of.remove(h)
	}
	h.settle()
}

func (h *Hold) settle() {
	h.ticket.Settle(time.Time{}, spillway.OutcomeServed) // the limiter needs no time
}

// These are the numbers of Holds that a sweep checks. The sweep of a rejection costs no more than a
// call.
const (
	sweepAtBegin     = 2
	sweepAtRejection = 64
	sweepAll         = math.MaxInt
)

// holds are the Holds of a limiter whose contexts can end. They form a ring in the order in which
// they were checked, the latest one last.
type holds struct {
	used atomic.Bool // true from the first Hold on; without Holds no lock is taken
	mu   sync.Mutex
	size int
	root Hold // of the ring
}

func (l *holds) add(h *Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.used.Load() {
		l.used.Store(true)
		l.root.prev, l.root.next = &l.root, &l.root
	}
	l.link(h)
}

// link adds h at the end of the ring.
func (l *holds) link(h *Hold) {
	h.prev, h.next = l.root.prev, &l.root
	h.prev.next, h.next.prev = h, h
	l.size++
}

func (l *holds) unlink(h *Hold) {
	h.prev.next, h.next.prev = h.next, h.prev
	h.prev, h.next = nil, nil
	l.size--
}

func (l *holds) remove(h *Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.next != nil { // a sweep has not removed it
		l.unlink(h)
	}
}

// sweep checks the n Holds that were not checked for longest, and releases the slots of those whose
// contexts have ended. It reports whether there were any.
func (l *holds) sweep(n int) bool {
	if !l.used.Load() {
		return false
	}
	ended := l.take(n)
	some := ended != nil
	for h := ended; h != nil; h = ended {
		ended, h.next = h.next, nil
		h.settle()
	}
	return some
}

// take checks the n Holds that were not checked for longest. It removes those with ended contexts,
// and returns them as a list.
func (l *holds) take(n int) (ended *Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n = min(n, l.size); n > 0; n-- {
		h := l.root.next
		l.unlink(h)
		if h.ctx.Err() == nil {
			l.link(h)
		} else if h.given.CompareAndSwap(false, true) {
			h.next, ended = ended, h
		}
	}
	return ended
}
