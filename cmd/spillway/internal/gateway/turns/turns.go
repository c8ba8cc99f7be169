// Package turns has requests wait for one of few places, as in front of a batch cluster.
//
// The highest class is first, and in a class the customers take turns, each with its oldest
// request of those whose task has made most progress. When the queue is full, a new request may wait only by
// replacing a request of a lower class, of a customer of the same class with more waiting requests, or of the
// same customer and a task with less progress, or with as much and a lower level.
package turns

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
)

// Limits are the limits of a [Queue].
type Limits struct {
	Places  int // requests in flight at once
	Waiting int // requests that wait
	MaxWait time.Duration
}

// A Request asks for a slot.
type Request struct {
	Criticality spillway.Criticality
	Customer    string
	// Level and Progress are those of its task.
	Level    spillway.Level
	Progress spillway.Progress
	// Incoming says that the body is still being received: the request holds its slot while the
	// proxy waits for the client.
	Incoming bool
}

// A Queue assigns slots to requests. Requests whose bodies are still being received get at
// most three quarters of the slots, so that slow clients cannot take all slots from complete
// requests. It is safe for concurrent use; make one with [New].
type Queue struct {
	all      queue
	incoming queue
}

// New returns an empty Queue.
func New(l Limits) *Queue {
	q := new(Queue)
	q.Update(l)
	return q
}

// Update changes the limits. It rejects no request that waits or runs.
func (q *Queue) Update(l Limits) {
	q.all.update(l)
	l.Places = max(1, l.Places-max(1, l.Places/incomingShare))
	q.incoming.update(l)
}

// incomingShare is the share of the slots, one of four, that is reserved for complete
// requests.
const incomingShare = 4

// Limits returns the limits in force.
func (q *Queue) Limits() Limits {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	return q.all.limits
}

// Enter waits for a slot. If it returns nil, [Queue.Leave] must be called once with the same
// request. The error is that of ctx, or a [spillway.RejectedError] if too many wait or the
// turn did not come in time.
func (q *Queue) Enter(ctx context.Context, r Request) error {
	if !r.Incoming {
		return q.all.enter(ctx, r, 0)
	}
	began := time.Now()
	if err := q.incoming.enter(ctx, r, 0); err != nil {
		return err
	}
	err := q.all.enter(ctx, r, time.Since(began))
	if err != nil {
		q.incoming.leave()
	}
	return err
}

// Leave frees the slot of a request.
func (q *Queue) Leave(r Request) {
	q.all.leave()
	if r.Incoming {
		q.incoming.leave()
	}
}

// Stats is a snapshot of a [Queue].
type Stats struct {
	Busy, Places  int // requests in flight
	Waiting       int
	RejectedTotal uint64        // for want of room
	ExpiredTotal  uint64        // whose turn did not come in time
	TurnsTotal    uint64        // that came after a wait
	Waited        time.Duration // for all of these
}

// Stats returns the levels and totals.
func (q *Queue) Stats() Stats {
	s, first := q.all.stats(), q.incoming.stats()
	s.Waiting += first.Waiting
	s.RejectedTotal += first.RejectedTotal
	s.ExpiredTotal += first.ExpiredTotal
	return s
}
