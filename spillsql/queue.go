package spillsql

import (
	"slices"
	"time"

	"github.com/seed90641741/spillway"
)

// maxQueue bounds the memory of a queue that is not cut.
const maxQueue = 1 << 16

// A queue holds the callers that wait for a connection, by class. It is not safe for
// concurrent use.
//
// A burst may wait. A queue that has not been empty for the interval is a standing queue:
// callers arrive faster than connections are returned, and a longer queue only makes all of
// them wait longer. It is cut to one caller per connection, so that connections never
// idle. While callers have to leave it for that reason, the first ones leave and the last
// ones are served: so a caller is served or rejected early, while it has time left. At all
// other times the order is that of arrival. Source: adaptive LIFO and controlled delay
// (Maurer, "Fail at Scale", ACM Queue 13/8, 2015).
type queue struct {
	interval time.Duration // negative: never cut
	limit    int           // of a standing queue
	classes  [spillway.Criticalities][]*waiter
	length   int
	since    time.Time // when it was empty last
	full     time.Time // when a caller had to leave last
	rejected uint64
}

// A waiter is a caller in the queue. ready receives once, what the caller gets.
type waiter struct {
	class int
	ready chan grant
}

// A grant ends a wait: with a connection, with the right to open one, or with neither.
type grant struct {
	physical *physical
	rejected bool
}

// stands reports whether the queue is a standing queue at the time now.
func (q *queue) stands(now time.Time) bool {
	return q.interval >= 0 && q.length > 0 && now.Sub(q.since) >= q.interval
}

// enter adds w at the time now, or returns false. Where the queue is longer than it may
// be, callers of the lowest class leave it.
func (q *queue) enter(now time.Time, w *waiter) bool {
	if q.length == 0 {
		q.since = now
	}
	capacity := maxQueue
	if q.stands(now) {
		capacity = q.limit
	}
	if q.length >= capacity {
		q.full = now
	}
	for q.length > capacity {
		q.evict(len(q.classes))
	}
	if q.length == capacity && !q.evict(w.class+1) {
		q.rejected++
		return false
	}
	q.classes[w.class] = append(q.classes[w.class], w)
	q.length++
	return true
}

// evict rejects the first caller of the lowest class below class, and reports whether
// there was one.
func (q *queue) evict(class int) bool {
	for i := range class {
		if len(q.classes[i]) > 0 {
			q.rejected++
			q.first(i).ready <- grant{rejected: true}
			return true
		}
	}
	return false
}

// first removes the first caller of a class.
func (q *queue) first(class int) *waiter {
	list := q.classes[class]
	w := list[0]
	list[0] = nil
	q.classes[class] = list[1:]
	q.length--
	return w
}

// next removes the caller whose turn it is at the time now, or returns nil.
func (q *queue) next(now time.Time) *waiter {
	last := now.Sub(q.full) < q.interval
	for i := len(q.classes) - 1; i >= 0; i-- {
		switch n := len(q.classes[i]); {
		case n == 0:
		case last:
			w := q.classes[i][n-1]
			q.classes[i][n-1] = nil
			q.classes[i] = q.classes[i][:n-1]
			q.length--
			return w
		default:
			return q.first(i)
		}
	}
	return nil
}

// leave removes w, and reports whether it was still in the queue.
func (q *queue) leave(w *waiter) bool {
	i := slices.Index(q.classes[w.class], w)
	if i < 0 {
		return false
	}
	q.classes[w.class] = slices.Delete(q.classes[w.class], i, i+1)
	q.length--
	return true
}
