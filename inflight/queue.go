package inflight

import (
	"sync"
	"sync/atomic"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/rejection"
)

// A queue has the callers of [Limiter.Acquire] that wait, for each class in the order of their
// arrival.
//
// No wake-up is lost. A caller first counts itself as waiting, and then looks for a free slot. A
// release first frees its slot, and then looks for waiting callers.
type queue struct {
	waiting atomic.Int32 // callers in the queue, or about to enter it

	mu      sync.Mutex
	depth   int // Config.QueueDepth
	size    int
	classes [spillway.Criticalities]fifo
}

// A fifo is a list of waiters. The zero fifo is empty.
type fifo struct{ first, last *waiter }

// A waiter is a caller that waits.
type waiter struct {
	before, after *waiter
	class         int
	queued        bool
	result        chan error // receives one value when the wait ends; nil means that it got a slot
}

// push adds a waiter. The caller holds q.mu.
func (q *queue) push(w *waiter) {
	l := &q.classes[w.class]
	w.queued, w.before = true, l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.after = w
	}
	l.last = w
	q.size++
}

// remove removes a waiter. The caller holds q.mu.
func (q *queue) remove(w *waiter) {
	l := &q.classes[w.class]
	if w.before == nil {
		l.first = w.after
	} else {
		w.before.after = w.after
	}
	if w.after == nil {
		l.last = w.before
	} else {
		w.after.before = w.before
	}
	w.before, w.after, w.queued = nil, nil, false
	q.size--
	q.waiting.Add(-1)
}

// next returns the waiter that gets the next slot: the first one of the highest class. It returns
// nil if the queue is empty. The caller holds q.mu.
func (q *queue) next() *waiter {
	for i := len(q.classes) - 1; i >= 0; i-- {
		if w := q.classes[i].first; w != nil {
			return w
		}
	}
	return nil
}

// lowest returns the last waiter of the lowest class below class, or nil. The caller holds q.mu.
func (q *queue) lowest(class int) *waiter {
	for i := range class {
		if w := q.classes[i].last; w != nil {
			return w
		}
	}
	return nil
}

// enter takes a slot for a caller and returns nil, nil. If none is free, it returns a waiter in the
// queue, or a rejection.
func (l *Limiter) enter(class int) (*waiter, error) {
	q := &l.queue
	if q.waiting.Load() == 0 && l.acquire(0) {
		return nil, nil //nolint:nilnil // neither waits nor is rejected
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting.Add(1)
	if q.size == 0 && l.acquire(0) {
		q.waiting.Add(-1)
		return nil, nil //nolint:nilnil // likewise
	}
	if err := l.makeRoom(class); err != nil {
		q.waiting.Add(-1)
		return nil, err
	}
	w := &waiter{class: class, result: make(chan error, 1)}
	q.push(w)
	return w, nil
}

// makeRoom makes sure that one more waiter of a class can enter the queue. If it is full, makeRoom
// rejects a waiter of a lower class, or returns the rejection of the caller. The caller holds
// queue.mu.
func (l *Limiter) makeRoom(class int) error {
	limit := uint32(l.word.Load())
	depth := l.queue.depth
	if depth == 0 {
		depth = int(limit)
	}
	switch {
	case limit == 0, depth < 0:
		return l.Reject()
	case l.queue.size < depth:
		return nil
	}
	l.drops.Add(1)
	w := l.queue.lowest(class)
	if w == nil {
		return queueFull.At(float64(depth))
	}
	l.queue.remove(w)
	w.result <- queueFull.At(float64(depth))
	return nil
}

// handOver gives a slot that is about to be released to the next waiter, and reports whether there
// was one. The slot stays counted, so no other caller can take it.
func (l *Limiter) handOver() bool {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	s := l.word.Load()
	w := l.queue.next()
	if w == nil || s < one || uint32(s>>32) > uint32(s) {
		return false // no waiter, nothing in flight, or more in flight than the limit
	}
	l.queue.remove(w)
	w.result <- nil
	return true
}

// wake gives free slots to waiters. With a limit of 0 it rejects them.
func (l *Limiter) wake() {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	for w := l.queue.next(); w != nil; w = l.queue.next() {
		switch {
		case uint32(l.word.Load()) == 0:
			l.queue.remove(w)
			w.result <- l.Reject()
		case l.acquire(0):
			l.queue.remove(w)
			w.result <- nil
		default:
			return
		}
	}
}

// leave ends the wait of a caller that gives up. It releases the slot if the caller has just got
// one.
func (l *Limiter) leave(w *waiter) {
	l.queue.mu.Lock()
	queued := w.queued
	if queued {
		l.queue.remove(w)
	}
	l.queue.mu.Unlock()
	if !queued && <-w.result == nil {
		l.Release()
	}
}

// queueFull has the rejections of callers that find the queue full, by its depth.
var queueFull = rejection.NewTable(func(level float64) *spillway.RejectedError {
	return &spillway.RejectedError{
		Policy: "inflight",
		Reason: spillway.ReasonQueueFull,
		Level:  level,
		Limit:  level,
		Unit:   "waiting callers",
		Advice: "as many callers wait for a place in flight as QueueDepth allows; send less, or raise MaxInFlight if the backend can do more",
	}
})
