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
	// Flow is a hash of the caller, by which callers are treated fairly. Set it before
	// [Shedder.Arrive]. Zero means that the caller is unknown.
	Flow uint64
	// Ticket is set when [Shedder.Next] returns the Waiter. The caller that runs the
	// request must settle it exactly once.
	Ticket spillway.Ticket
	// Err is the rejection, set when [Shedder.Arrive] returns the Waiter as evicted, when
	// [Shedder.Next] returns it as one that will never run, or when [Shedder.Expire] takes it out. It
	// is nil where the Ticket is set.
	Err error

	key        string
	deadline   time.Time
	queue      *queue
	order      order
	waiting    bool
	maxWait    time.Duration
	by         cause         // cause of its rejection after maxWait
	bears      time.Duration // as in arrival
	until      time.Duration // when its maximum wait has passed
	arrived    uint64        // number of the waiter, in the order of arrival
	index      int           // index in the heap of its queue
	prev, next *Waiter       // the next older and the next newer waiter of its group
}

// A queue is the waiting queue of one scope. In scope 0 requests wait for a processor or for the
// limit of all keys, in each other scope for the limit of one key. Rejections in one scope do not
// affect other scopes.
type queue struct {
	waiters
	cascade  cascade
	callers  [spillway.Criticalities]callers
	limited  bool          // the latest request would wait for a limit, not for a processor
	byLimit  time.Duration // when a request was last rejected while limited
	full     standing      // the signal that an overload stands before the limit
	short    int           // capacity while an overload stands behind the limit; 0: none does
	marginal int           // the lowest group that is served then
	served   float64       // requests that are served in MaxWait; 0: unknown
	leaving  bool          // more clients leave while they wait than while their requests run
	left     float64       // share of waiters whose clients have left
	again    time.Duration // when the queue may next become long, to find out whether clients leave
	delay    time.Duration // wait of each request behind the limit
	parked   time.Duration // age from which a request at work does not count; 0: none

	// These fields are for a limit that is only observed (see hold).
	present int    // requests in flight that came to this queue
	holds   bool   // the limit was reached, and counts as reached while present is above reached
	reached int    // requests that were in flight when the limit was reached
	key     string // key of the request that found the limit reached
}

// overloaded reports whether so much of a rank is rejected that its waiters with a low order have
// little chance to run. A queue for a limit is never overloaded in this sense: it is short instead.
func (q *queue) overloaded(rank int) bool {
	return !q.limited && q.cascade.rejected(rank) > cut
}

// wait returns the maximum time in the queue for a limit with this latency, in seconds. A queue
// that stands for longer than patience absorbs no burst and only adds latency: then half the
// latency is enough to keep the limit reached. If clients leave while they wait, the queue stays
// long, so that those who stay are known when their turn comes.
func (q *queue) wait(patience time.Duration, latency float64) time.Duration {
	if q.leaving || q.full.lasts <= patience {
		return patience
	}
	return min(patience, max(brief, time.Duration(latency/2*float64(time.Second))))
}

// first returns the waiter that runs first, nil if none waits. It is the one with the highest
// order, or the oldest of all while no request is rejected: a server below its capacity keeps the
// order of arrival.
func (q *queue) first() *Waiter {
	if !q.limited && q.calm() {
		return q.oldest(0)
	}
	if q.n <= q.short {
		if w := q.oldest(q.marginal); w != nil {
			return w
		}
	}
	group := q.highest()
	if group < 0 {
		return nil
	}
	return q.groups[group].oldest
}

// calm reports whether no request is rejected and none will be because of its wait: no caller has a
// fair share, and all waiters are served within four fifths of MaxWait.
func (q *queue) calm() bool {
	for i := range q.callers {
		if q.callers[i].shares() {
			return false
		}
	}
	return q.cascade.highest(-1) <= noise && (q.served == 0 || float64(q.n) <= 0.8*q.served)
}

// within returns how many requests of callers within the fair share are at work.
func (q *queue) within() (n int) {
	for i := range q.callers {
		n += q.callers[i].groups[1].held()
	}
	return n
}

// resting reports whether no request is at work.
func (q *queue) resting() bool {
	for i := range q.callers {
		if q.callers[i].groups[0].held()+q.callers[i].groups[1].held() > 0 {
			return false
		}
	}
	return true
}

// keeps reports whether a request of a rank must leave the free slots of a limit, left in number,
// to callers within the fair share of its class and of higher classes. If no request is at work,
// any waiter may run: the limit may have fallen below what those callers needed.
func (q *queue) keeps(rank int, at, wait time.Duration, left float64) bool {
	if math.IsInf(left, 1) || q.resting() {
		return false
	}
	kept := 0.0
	for class := (rank + 1) / 2; class < len(q.callers); class++ {
		kept += q.callers[class].kept(at, wait, left)
	}
	return kept > 0 && left <= kept
}

// victim returns the waiter that a newcomer replaces in a full queue: the one with the lowest
// order, if that is below the order of the newcomer. Otherwise it returns nil.
func (q *queue) victim(newcomer order) *Waiter {
	if w := q.lowest(); w != nil && w.order < newcomer {
		return w
	}
	return nil
}

// turn returns the maximum useful wait in a short queue: twice the time in which all of the queue
// is served. It is twice that, because a limit is lower while its base latency is measured.
// capacity is that of the queue, and rate the requests that are served per second.
func (q *queue) turn(group int, capacity int, rate float64) time.Duration {
	if q.short == 0 || group > q.marginal || rate == 0 {
		return math.MaxInt64
	}
	return max(brief, time.Duration(float64(2*capacity)/rate*float64(time.Second)))
}

// brief is the shortest maximum wait. It is less than the wait for a processor under load.
const brief = 5 * time.Millisecond
