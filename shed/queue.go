package shed

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

// A Waiter is one request in a waiting queue. It may be used again after the request has
// left the queue. The zero Waiter is ready for use. Callers only read the fields that the
// [Shedder] sets.
type Waiter struct {
	// Owner is for the caller, to find the request. The Shedder does not use it.
	Owner any
	// Ticket is set when [Shedder.Next] returns the Waiter. The caller that runs the
	// request must settle it exactly once.
	Ticket spillway.Ticket
	// Err is the rejection, set when [Shedder.Arrive] returns the Waiter as
	// evicted, when [Shedder.Next] does as one that will never run, or when
	// [Shedder.Expire] takes it out. It is nil where the Ticket is set.
	Err error

	key        string
	queue      *queue
	class      int
	waiting    bool
	arrived    uint64  // in order
	prev, next *Waiter // towards the older and the newer one
}

// queue is the waiting queue of one scope: of scope 0 for a processor or for the limit of all
// keys, of other scopes for the limit of one key. Rejections in one scope do not affect other
// scopes.
type queue struct {
	classes        [spillway.Criticalities]list
	n              int
	cascade        cascade
	limited        bool          // requests wait for a limit, not for a processor
	seen, standing time.Duration // see
	served         float64       // requests in MaxWait, as of the limit's throughput; 0: unknown
	leaving        bool          // clients leave before they are answered
	left           float64       // share of waiters whose clients have left
}

// list holds the waiters of a class in the order of their arrival.
type list struct{ oldest, newest *Waiter }

// add puts a waiter behind those that arrived earlier. One that comes from another queue may
// not be the newest.
func (q *queue) add(w *Waiter, class int) {
	l := &q.classes[class]
	prev, next := l.newest, (*Waiter)(nil)
	for prev != nil && prev.arrived > w.arrived {
		prev, next = prev.prev, prev
	}
	w.queue, w.class, w.waiting, w.prev, w.next = q, class, true, prev, next
	if prev == nil {
		l.oldest = w
	} else {
		prev.next = w
	}
	if next == nil {
		l.newest = w
	} else {
		next.prev = w
	}
	q.n++
}

func (q *queue) remove(w *Waiter) {
	l := &q.classes[w.class]
	if w.prev == nil {
		l.oldest = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.newest = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.waiting, w.prev, w.next = false, nil, nil
	q.n--
}

// highest returns the highest class that waits, -1 for none.
func (q *queue) highest() int {
	for class := len(q.classes) - 1; class >= 0; class-- {
		if q.classes[class].oldest != nil {
			return class
		}
	}
	return -1
}

// lowest returns the lowest class that waits, -1 for none.
func (q *queue) lowest() int {
	for class := range q.classes {
		if q.classes[class].oldest != nil {
			return class
		}
	}
	return -1
}

// oldest returns what has waited for longest, nil for nothing.
func (q *queue) oldest() (first *Waiter) {
	for class := range q.classes {
		if w := q.classes[class].oldest; w != nil && (first == nil || w.arrived < first.arrived) {
			first = w
		}
	}
	return first
}

// newestFirst reports whether the newest waiter of a class runs first, because so much of the
// class is rejected that the older waiters have little time left. The queue for a limit is
// short instead.
func (q *queue) newestFirst(class int) bool {
	return !q.limited && q.cascade.classes[class].refused > cut
}

// see observes, at an arrival, whether the limit admits one more. Standing is the time for
// which it did not. Time in which it did is subtracted four times: a limit that is free for a
// fifth of the time is not overloaded for long.
func (q *queue) see(at time.Duration, free bool) {
	q.limited = !free
	passed := at - q.seen
	q.seen = at
	if free {
		passed *= -4
	}
	q.standing = min(max(q.standing+passed, 0), 10*time.Second)
}

// wait is the maximum time in the queue for a limit with this latency. A queue that stands
// for longer than patience absorbs no burst and only adds latency: half the latency is enough
// to keep the limit reached. If clients leave early, the queue stays long: the waiters are
// the requests whose clients stay.
func (q *queue) wait(patience time.Duration, latency float64) time.Duration {
	if q.leaving || q.standing <= patience {
		return patience
	}
	return min(patience, max(brief, time.Duration(latency/2*float64(time.Second))))
}

// first returns the waiter that runs first: of the highest class, or the oldest of all while
// no request is rejected. So a server below its capacity keeps the order of arrival.
func (q *queue) first() *Waiter {
	if !q.limited && q.calm() {
		return q.oldest()
	}
	class := q.highest()
	if class < 0 {
		return nil
	}
	if q.newestFirst(class) {
		return q.classes[class].newest
	}
	return q.classes[class].oldest
}

// calm reports whether no request is rejected, nor will be because of its wait: the queue is
// served within four fifths of MaxWait.
func (q *queue) calm() bool {
	return q.cascade.pressed <= noise && (q.served == 0 || float64(q.n) <= 0.8*q.served)
}

// last returns the waiter of a class that runs last, if it does.
func (q *queue) last(class int) *Waiter {
	if q.newestFirst(class) {
		return q.classes[class].oldest
	}
	return q.classes[class].newest
}

// turn is the maximum useful wait in a class whose newest waiter runs first: the time in
// which the whole queue is served.
func (q *queue) turn(class int, capacity int, rate float64) time.Duration {
	if !q.newestFirst(class) || rate == 0 {
		return math.MaxInt64
	}
	return max(brief, time.Duration(float64(capacity)/rate*float64(time.Second)))
}

// brief is the least maximum wait: less than the wait for a processor under load.
const brief = 5 * time.Millisecond
