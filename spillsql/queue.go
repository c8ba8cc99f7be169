package spillsql

import (
	"time"

	"github.com/seed90641741/spillway"
)

// maxQueue bounds the memory of a queue that is not cut.
const maxQueue = 1 << 16

// A queue holds the callers that wait for a connection, in the order of their class and,
// within a class, of their arrival. It is not safe for concurrent use.
//
// A burst may wait. A queue that has not been empty for the interval is a standing queue:
// callers arrive faster than connections are returned, and a longer queue only makes all
// of them wait longer. It is cut to one caller per connection, which is the
// next one for each, so that connections never idle.
type queue struct {
	interval time.Duration // negative: never cut
	limit    int           // of a standing queue
	classes  [spillway.Criticalities][]*waiter
	length   int
	since    time.Time // when it was empty last
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

// capacity returns how many callers may wait at the time now.
func (q *queue) capacity(now time.Time) int {
	if q.length == 0 {
		q.since = now
	}
	if q.interval >= 0 && now.Sub(q.since) >= q.interval {
		return q.limit
	}
	return maxQueue
}

// enter adds w at the time now, or returns false. Where the queue is longer than it may
// be, callers of the lowest class leave it, the last ones first.
func (q *queue) enter(now time.Time, w *waiter) bool {
	capacity := q.capacity(now)
	for q.length > capacity {
		q.evict(len(q.classes))
	}
	if q.length == capacity && !q.evict(w.class) {
		q.rejected++
		return false
	}
	q.classes[w.class] = append(q.classes[w.class], w)
	q.length++
	return true
}

// evict rejects the last caller of the lowest class below class, and reports whether there
// was one.
func (q *queue) evict(class int) bool {
	for i := range class {
		if n := len(q.classes[i]); n > 0 {
			w := q.classes[i][n-1]
			q.classes[i][n-1] = nil
			q.classes[i] = q.classes[i][:n-1]
			q.length--
			q.rejected++
			w.ready <- grant{rejected: true}
			return true
		}
	}
	return false
}

// next removes the caller whose turn it is, or returns nil.
func (q *queue) next() *waiter {
	for i := len(q.classes) - 1; i >= 0; i-- {
		if len(q.classes[i]) > 0 {
			w := q.classes[i][0]
			q.classes[i][0] = nil
			q.classes[i] = q.classes[i][1:]
			q.length--
			return w
		}
	}
	return nil
}

// leave removes w, and reports whether it was still in the queue.
func (q *queue) leave(w *waiter) bool {
	list := q.classes[w.class]
	for i, other := range list {
		if other == w {
			q.classes[w.class] = append(list[:i:i], list[i+1:]...)
			q.length--
			return true
		}
	}
	return false
}
