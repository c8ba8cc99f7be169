package inflight

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// A Hold keeps a place in flight for an answer that goes on, such as a streamed body: until End, or until its context
// has ended, whichever is first. So a caller that forgets an answer does not keep its place. The zero Hold is ready for
// Begin. It must not be copied; its methods are safe for concurrent use.
//
// To watch a context costs more allocations and time than all other policies together. So nothing waits for its
// end: the limiter looks for ended contexts where somebody would notice, which is before it rejects and in Stats, and at
// the two oldest ones for each new Hold, so that forgotten ones do not add up.
type Hold struct {
	ctx    context.Context //nolint:containedctx // which it ends with
	ticket spillway.Ticket
	after  func()
	given  atomic.Bool

	of         *holds // nil if the context has no end
	prev, next *Hold  // with its mu
}

// Begin takes over the place of t, a ticket of the limiter l or of what wraps it. after, if not nil, is called by End.
func (h *Hold) Begin(ctx context.Context, t spillway.Ticket, l *Limiter, after func()) {
	h.ctx, h.ticket, h.after = ctx, t, after
	if t.By != nil && l != nil && ctx.Done() != nil {
		h.of = &l.holds
		l.holds.sweep(sweepAtBegin)
		l.holds.add(h)
	}
}

// End gives the place back, if it is still held. It may be called again.
func (h *Hold) End() {
	h.GiveBack()
	if h.after != nil {
		h.after()
	}
}

// GiveBack is End without the call of after, for an answer that is kept for a while.
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
	h.ticket.Settle(time.Time{}, spillway.OutcomeServed) // the limit keeps no time
}

// How many Holds a sweep looks at. A rejection looks at so many that it costs no more than a call.
const (
	sweepAtBegin     = 2
	sweepAtRejection = 64
	sweepAll         = math.MaxInt
)

// holds are the Holds of a limiter whose contexts can end. Those that were looked at last are last.
type holds struct {
	used atomic.Bool // ever, so that limiters without Holds take no lock
	mu   sync.Mutex
	size int
	root Hold // of a ring
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

// link puts h last.
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
	if h.next != nil { // no sweep has taken it
		l.unlink(h)
	}
}

// sweep gives back the places of Holds whose contexts have ended, among the n that were looked at longest ago. It
// reports whether there were any.
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

// take unlinks those Holds, and returns them as a list.
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
