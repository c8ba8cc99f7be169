package egress

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/place"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// The gates of an attempt, in order.
const (
	throttleGate = iota
	inflightGate
	gates
)

// An Attempt is one try at a call. It is valid only while the func that it was
// passed to runs, and not safe for concurrent use.
type Attempt struct {
	// The retry policy's side: the number of the attempt, and the endpoints
	// that earlier attempts found overloaded.
	*retry.Attempt
	// Start is when the attempt was admitted.
	Start time.Time

	policies *Policies // nil for a hedge
	task     *spillway.Task
	route    throttle.Route
	tickets  [gates]spillway.Ticket
	admitted [gates]bool
	accepts  float64            // what the answer says of the server's accept ratio
	cancel   context.CancelFunc // of its own context, if it has one
}

// Task returns the task that the call belongs to, or nil. Adapters send its level, and its progress at the time of the attempt, to
// services that they send the criticality to.
func (a *Attempt) Task() *spillway.Task { return a.task }

// IsHedge reports whether the attempt is a hedge, which runs at the same time as the first attempt.
func (a *Attempt) IsHedge() bool { return a.policies == nil }

// Hold keeps the attempt's place in flight in h after the send func has returned, for transports whose answer
// goes on, such as a streamed body. The place is given back by h.End, or when ctx has ended, whichever is first. Hold
// reports whether h holds anything. If Hold is not called, the place is given back when the func returns.
func (a *Attempt) Hold(ctx context.Context, h *inflight.Hold) bool {
	t, cancel := a.tickets[inflightGate], a.cancel
	a.tickets[inflightGate], a.cancel = spillway.Ticket{}, nil
	if t.By == nil && cancel == nil {
		return false
	}
	limiter, _ := place.Limiter(t.By).(*inflight.Limiter)
	h.Begin(ctx, t, limiter, cancel)
	return true
}

// GiveBack gives the attempt's place in flight back now, for calls that from then on only wait at the backend.
func (a *Attempt) GiveBack() { a.tickets[inflightGate].Settle(a.Start, spillway.OutcomeAbandoned) }

// release gives back what nobody has taken over.
func (a *Attempt) release(now time.Time, o spillway.Outcome) {
	a.tickets[inflightGate].Settle(now, o)
	if a.cancel != nil {
		a.cancel()
		a.cancel = nil
	}
}

// Accepted reports that the backend has accepted the attempt, as its answer has begun. The
// throttle counts it now, once, however the answer ends: a stream may do so after hours, or be
// canceled, which says nothing about the backend. The attempt stays in flight. If Accepted is not
// called, the throttle learns from the result. A hedge is not counted.
func (a *Attempt) Accepted() {
	if a.policies == nil || a.tickets[throttleGate].By == nil {
		return
	}
	t, now := a.policies.Throttle, a.Start
	if t.Timed(spillway.OutcomeServed) {
		now = time.Now()
	}
	t.Settle(a.Start, now, &a.tickets[throttleGate], a.route, spillway.OutcomeServed)
}

// Advise reports which share of the calls of this criticality the server says
// that it accepts, from 0 to 1. The throttle starts from it while it has seen few
// calls ([throttle.Throttle.Advise]). An answer for which Advise is not
// called counts as 1. Only pass on what a server says that is trusted as internal.
func (a *Attempt) Advise(ratio float64) { a.accepts = ratio }
