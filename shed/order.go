package shed

import (
	"container/heap"
	"math/bits"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/precedence"
)

// An order says which of two requests is rejected first: the one with the lower order. A request
// has a lower order if its class is lower; within a class, if its caller asks for more than its
// fair share; then, if its task has made less progress; then, if its level is lower.
type order uint16

const steps = precedence.Steps

func orderOf(rank int, p spillway.Progress, l spillway.Level) order {
	return order(rank*steps)<<8 + order(precedence.Of(p, l))
}

func (o order) rank() int { return o.group() / steps }

func (o order) class() int { return o.rank() / 2 }

func (o order) level() spillway.Level { return spillway.Level(o) }

// group returns the order without the level: the number of a rank and a step of progress.
func (o order) group() int { return int(o >> 8) }

// groups is the number of groups.
const groups = ranks * steps

// waiters holds the waiters of a queue. They run by rank, progress and time of arrival, and are
// rejected from the lowest order up. So the requests that run have not waited for long, whatever
// their levels are.
type waiters struct {
	n        int
	groups   [groups]list
	occupied uint64 // a bit for each group that has waiters
	last     byOrder
}

// list holds the waiters of a group in the order of their arrival.
type list struct{ oldest, newest *Waiter }

// add puts a waiter behind the waiters of its group that arrived earlier. A waiter that comes from
// another queue may have arrived before some of them.
func (q *waiters) add(w *Waiter) {
	l := &q.groups[w.order.group()]
	older, newer := l.newest, (*Waiter)(nil)
	for older != nil && older.arrived > w.arrived {
		older, newer = older.prev, older
	}
	l.join(older, w)
	l.join(w, newer)
	w.waiting = true
	q.n++
	q.occupied |= 1 << w.order.group()
	heap.Push(&q.last, w)
}

func (q *waiters) remove(w *Waiter) {
	l := &q.groups[w.order.group()]
	l.join(w.prev, w.next)
	if l.oldest == nil {
		q.occupied &^= 1 << w.order.group()
	}
	w.waiting, w.prev, w.next = false, nil, nil
	q.n--
	heap.Remove(&q.last, w.index)
}

// join makes two waiters neighbors in the list. One of them is nil at an end.
func (l *list) join(older, newer *Waiter) {
	if older == nil {
		l.oldest = newer
	} else {
		older.next = newer
	}
	if newer == nil {
		l.newest = older
	} else {
		newer.prev = older
	}
}

// lowest returns the waiter that is rejected first, nil if none waits. Of several with the same
// order it is the newest.
func (q *waiters) lowest() *Waiter {
	if q.n == 0 {
		return nil
	}
	return q.last[0]
}

// highest returns the highest group that has waiters, -1 if none has.
func (q *waiters) highest() int { return bits.Len64(q.occupied) - 1 }

// oldest returns, of the waiters of a group and the groups above it, the one with most progress,
// and of several the one that has waited for longest. It returns nil if none waits.
func (q *waiters) oldest(group int) (first *Waiter) {
	for left := q.occupied >> group << group; left != 0; left &= left - 1 {
		w := q.groups[bits.TrailingZeros64(left)].oldest
		if first == nil || w.before(first) {
			first = w
		}
	}
	return first
}

// before reports whether w would run before another waiter if both had the same rank.
func (w *Waiter) before(other *Waiter) bool {
	a, b := w.order.group()%steps, other.order.group()%steps
	return a > b || a == b && w.arrived < other.arrived
}

// byOrder is a heap of waiters for package heap. The lowest is the first.
type byOrder []*Waiter

func (h byOrder) Len() int { return len(h) }

func (h byOrder) Less(i, j int) bool {
	return h[i].order < h[j].order || h[i].order == h[j].order && h[i].arrived > h[j].arrived
}

func (h byOrder) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *byOrder) Push(w any) {
	w.(*Waiter).index = len(*h)
	*h = append(*h, w.(*Waiter))
}

// Pop implements [heap.Interface].
func (h *byOrder) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return w
}
