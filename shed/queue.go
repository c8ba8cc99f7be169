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
	// Err is the rejection, set when [Shedder.Arrive] returns the Waiter as
	// evicted, when [Shedder.Next] does as one that will never run, or when
	// [Shedder.Expire] takes it out. It is nil where the Ticket is set.
	Err error

	key        string
	deadline   time.Time
	queue      *queue
	order      order
	waiting    bool
	maxWait    time.Duration
	by         cause         // of the rejection if it waits for longer
	bears      time.Duration // as in arrival
	until      time.Duration // it may wait until then if no processor is free
	stalled    time.Duration // until when it arrived, or its wait became longer
	arrived    uint64        // in order
	index      int           // in the heap of its queue
	prev, next *Waiter       // to the older and the newer one of its group
}

// queue is the waiting queue of one scope: of scope 0 for a processor or for the limit of all
// keys, of other scopes for the limit of one key. Rejections in one scope do not affect other
// scopes.
type queue struct {
	waiters
	cascade  cascade
	callers  [spillway.Criticalities]callers
	limited  bool          // requests wait for a limit, not for a processor
	full     standing      // the limit is
	short    int           // waiters, while an overload stands behind the limit; 0: none does
	marginal int           // the lowest group that is served then
	served   float64       // requests in MaxWait, as of the limit's throughput; 0: unknown
	leaving  bool          // clients leave while they wait, more of them than of those whose requests run
	left     float64       // share of waiters whose clients have left
	again    time.Duration // when the queue may become long to find that out
	delay    time.Duration // of each request behind the limit
	present  int           // requests in flight that came here, if they are observed
	holds    bool          // the limit was reached, and still counts as reached while more of them are present than
	reached  int           // were in flight then,
	key      string        // for this key
	parked   time.Duration // age from which a request at work does not count; 0: none
}

// overloaded reports whether so much of a rank is rejected that waiters with a low order have little
// chance to run. The queue for a limit is short instead.
func (q *queue) overloaded(rank int) bool {
	return !q.limited && q.cascade.ranks[rank].rejected > cut
}

// standing is the time for which requests recently had to wait. Time in which they did not is
// subtracted four times: a server that is free for a fifth of the time is not overloaded for long.
type standing struct{ seen, lasts time.Duration }

// remembered is the longest such time, and for how long it counts if no request comes.
const remembered = 10 * time.Second

// see observes, at an arrival, whether it need not wait. What an arrival that must wait says of
// the time before it goes back to most.
func (s *standing) see(at time.Duration, free bool, most time.Duration) {
	passed := at - s.seen
	s.seen = at
	switch {
	case passed >= remembered: // whether requests would have had to wait is not known
		s.lasts = 0
		return
	case free:
		passed *= -4
	}
	s.lasts = min(max(s.lasts+min(passed, most), 0), remembered)
}

// over reports whether requests do not have to wait, as far as is known.
func (s *standing) over(at time.Duration) bool { return s.lasts == 0 || at-s.seen >= remembered }

// wait is the maximum time in the queue for a limit with this latency. A queue that stands
// for longer than patience absorbs no burst and only adds latency: half the latency is enough
// to keep the limit reached. If the clients of waiters leave, and those of requests that run stay, the
// queue stays long: it finds out who stays. If the latter leave, too, it is longer than clients wait.
func (q *queue) wait(patience time.Duration, latency float64) time.Duration {
	if q.leaving || q.full.lasts <= patience {
		return patience
	}
	return min(patience, max(brief, time.Duration(latency/2*float64(time.Second))))
}

// first returns the waiter that runs first: the highest, or the oldest of all while
// no request is rejected. So a server below its capacity keeps the order of arrival.
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

// calm reports whether no request is rejected, nor will be because of its wait: no caller has a
// fair share, and the queue is served within four fifths of MaxWait.
func (q *queue) calm() bool {
	for i := range q.callers {
		if q.callers[i].shares() {
			return false
		}
	}
	return q.cascade.pressed <= noise && (q.served == 0 || float64(q.n) <= 0.8*q.served)
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

// keeps reports whether a request of a rank must leave the free places to callers within the
// fair share of its class and of higher classes. So many are left. If none is at work, any
// waiter may run: the limit may have fallen below what those callers needed.
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

// victim returns the waiter that a newcomer replaces in a full queue: the lowest, if it is below the newcomer. Otherwise it
// returns nil.
func (q *queue) victim(newcomer order) *Waiter {
	if w := q.lowest(); w != nil && w.order < newcomer {
		return w
	}
	return nil
}

// turn is the maximum useful wait in a short queue: twice the time in which it is served, because a limit is lower while its
// base latency is measured.
func (q *queue) turn(group int, capacity int, rate float64) time.Duration {
	if q.short == 0 || group > q.marginal || rate == 0 {
		return math.MaxInt64
	}
	return max(brief, time.Duration(float64(2*capacity)/rate*float64(time.Second)))
}

// brief is the least maximum wait: less than the wait for a processor under load.
const brief = 5 * time.Millisecond
