package shed

import (
	"github.com/seed90641741/spillway"
)

// A Waiter is a place in the room for one request. It may be used again once
// the request has left the room. The zero Waiter is ready for use; what is set
// by the [Shedder] must only be read.
type Waiter struct {
	// Owner is for whoever drives the Shedder: it finds the request by it.
	Owner any
	// Ticket is set when [Shedder.Next] returns the Waiter. Whoever runs the
	// request must settle it exactly once.
	Ticket spillway.Ticket
	// Err is the refusal, set when [Shedder.Arrive] returns the Waiter as
	// evicted, when [Shedder.Next] does as one that will never run, or when
	// [Shedder.Expire] takes it out. It is nil where the Ticket is set.
	Err error

	class      int
	waiting    bool
	arrived    uint64  // in order
	prev, next *Waiter // towards the older and the newer one
}

// room holds the waiters of each class in the order of their arrival.
type room struct {
	queues  [spillway.Criticalities]queue
	n       int
	arrived uint64
}

type queue struct{ oldest, newest *Waiter }

func (r *room) add(w *Waiter, class int) {
	q := &r.queues[class]
	r.arrived++
	w.class, w.waiting, w.arrived, w.prev, w.next = class, true, r.arrived, q.newest, nil
	if q.newest == nil {
		q.oldest = w
	} else {
		q.newest.next = w
	}
	q.newest = w
	r.n++
}

func (r *room) remove(w *Waiter) {
	q := &r.queues[w.class]
	if w.prev == nil {
		q.oldest = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.newest = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.waiting, w.prev, w.next = false, nil, nil
	r.n--
}

// highest returns the highest class that anybody of waits, -1 if nobody does.
func (r *room) highest() int {
	for class := len(r.queues) - 1; class >= 0; class-- {
		if r.queues[class].oldest != nil {
			return class
		}
	}
	return -1
}

// lowest returns the lowest class that anybody of waits, -1 if nobody does.
func (r *room) lowest() int {
	for class := range r.queues {
		if r.queues[class].oldest != nil {
			return class
		}
	}
	return -1
}

// oldest returns who has waited for longest, nil if nobody waits.
func (r *room) oldest() (first *Waiter) {
	for class := range r.queues {
		if w := r.queues[class].oldest; w != nil && (first == nil || w.arrived < first.arrived) {
			first = w
		}
	}
	return first
}
