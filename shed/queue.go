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
	rank       int
	waiting    bool
	maxWait    time.Duration
	by         cause         // of the rejection if it waits for longer
	bears      time.Duration // as in arrival
	until      time.Duration // it may wait until then if no processor is free
	stalled    time.Duration // until when it arrived, or its wait became longer
	arrived    uint64        // in order
	prev, next *Waiter       // towards the older and the newer one
}

// queue is the waiting queue of one scope: of scope 0 for a processor or for the limit of all
// keys, of other scopes for the limit of one key. Rejections in one scope do not affect other
// scopes.
type queue struct {
	ranks    [ranks]list
	n        int
	cascade  cascade
	callers  [spillway.Criticalities]callers
	limited  bool          // requests wait for a limit, not for a processor
	full     standing      // the limit is
	short    int           // waiters, while an overload stands behind the limit; 0: none does
	marginal int           // the lowest rank that is served then
	served   float64       // requests in MaxWait, as of the limit's throughput; 0: unknown
	leaving  bool          // clients leave while they wait, more of them than of those whose requests run
	left     float64       // share of waiters whose clients have left
	delay    time.Duration // of each request behind the limit
	parked   time.Duration // age from which a request at work does not count; 0: none
}

// list holds the waiters of a rank in the order of their arrival.
type list struct {
	oldest, newest *Waiter
	held           [bins]uint32 // places in the queue that callers hold, by bin
}

// bins is how many groups callers are hashed into, to find the one that holds most places in
// the queue. Callers that share a bin count as one.
const bins = 32

// add puts a waiter behind earlier waiters. One that comes from another queue may
// not be the newest.
func (q *queue) add(w *Waiter, rank int) {
	l := &q.ranks[rank]
	l.held[w.Flow%bins]++
	older, newer := l.newest, (*Waiter)(nil)
	for older != nil && older.arrived > w.arrived {
		older, newer = older.prev, older
	}
	l.join(older, w)
	l.join(w, newer)
	w.queue, w.rank, w.waiting = q, rank, true
	q.n++
}

func (q *queue) remove(w *Waiter) {
	l := &q.ranks[w.rank]
	l.held[w.Flow%bins]--
	l.join(w.prev, w.next)
	w.waiting, w.prev, w.next = false, nil, nil
	q.n--
}

// join makes two waiters neighbors. One of them is nil at an end of the list.
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

// highest returns the highest rank that waits, -1 for none.
func (q *queue) highest() int {
	for rank := ranks - 1; rank >= 0; rank-- {
		if q.ranks[rank].oldest != nil {
			return rank
		}
	}
	return -1
}

// lowest returns the lowest rank that waits, -1 for none.
func (q *queue) lowest() int {
	for rank := range q.ranks {
		if q.ranks[rank].oldest != nil {
			return rank
		}
	}
	return -1
}

// oldest returns what has waited for longest, of a rank and those above it, nil for nothing.
func (q *queue) oldest(rank int) (first *Waiter) {
	for ; rank < ranks; rank++ {
		if w := q.ranks[rank].oldest; w != nil && (first == nil || w.arrived < first.arrived) {
			first = w
		}
	}
	return first
}

// newestFirst reports whether the newest waiter of a rank runs first, because so much of the
// rank is rejected that the older waiters have little time left. The queue for a limit is
// short instead.
func (q *queue) newestFirst(rank int) bool {
	return !q.limited && q.cascade.ranks[rank].refused > cut
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

// first returns the waiter that runs first: of the highest rank, or the oldest of all while
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
	rank := q.highest()
	if rank < 0 {
		return nil
	}
	if q.newestFirst(rank) {
		return q.ranks[rank].newest
	}
	return q.ranks[rank].oldest
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

// last returns the waiter of a rank that runs last, if it does, of those in a bin, or of all
// if bin is negative.
func (q *queue) last(rank, bin int) (w *Waiter) {
	oldest := q.newestFirst(rank)
	if w = q.ranks[rank].newest; oldest {
		w = q.ranks[rank].oldest
	}
	for bin >= 0 && int(w.Flow%bins) != bin {
		if oldest {
			w = w.next
		} else {
			w = w.prev
		}
	}
	return w
}

// victim returns the waiter that a newcomer replaces in a full queue, nil for none: one of the
// lowest rank, if that is below the newcomer's or if its caller holds at least two places more
// than the newcomer's caller. It is the last waiter of the caller with the most places.
func (q *queue) victim(rank int, flow uint64) *Waiter {
	lowest := q.lowest()
	if lowest < 0 || lowest > rank {
		return nil
	}
	held, most := &q.ranks[lowest].held, 0
	for bin, n := range held {
		if n > held[most] {
			most = bin
		}
	}
	if lowest == rank && held[most] < held[flow%bins]+2 {
		return nil
	}
	return q.last(lowest, most)
}

// turn is the maximum useful wait in a rank whose newest waiter runs first: the time in
// which the whole queue is served. In a short queue it is twice as long, because a limit is lower
// while its base latency is measured.
func (q *queue) turn(rank int, capacity int, rate float64) time.Duration {
	times := 1.0
	switch {
	case rate == 0:
		return math.MaxInt64
	case q.short > 0 && rank <= q.marginal:
		times = 2
	case !q.newestFirst(rank):
		return math.MaxInt64
	}
	return max(brief, time.Duration(float64(times*float64(capacity))/rate*float64(time.Second)))
}

// brief is the least maximum wait: less than the wait for a processor under load.
const brief = 5 * time.Millisecond
