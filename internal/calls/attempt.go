package calls

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

// An Attempt is one attempt of a call, and what it holds. It is not safe for concurrent use.
type Attempt struct {
	*retry.Attempt

	Start   time.Time          // when it was admitted
	Route   throttle.Route     // of the call
	Task    *spillway.Task     // that the call belongs to, or nil
	Accepts float64            // what the answer says of the server's accept ratio; 1 until then
	Cancel  context.CancelFunc // of the attempt's own context, if it has one

	policies *Policies // nil for a hedge
	tickets  [gates]spillway.Ticket
	admitted [gates]bool
}

// IsHedge reports whether the attempt is no attempt of a Flow, but a hedge.
func (a *Attempt) IsHedge() bool { return a.policies == nil }

// InFlight returns the ticket of the in-flight limit. It is zero if the attempt holds no slot.
func (a *Attempt) InFlight() *spillway.Ticket { return &a.tickets[inflightGate] }

// Hold keeps the slot in flight in h, until h.End or until ctx has ended. It reports whether h
// holds anything.
func (a *Attempt) Hold(ctx context.Context, h *inflight.Hold) bool {
	t, cancel := a.tickets[inflightGate], a.Cancel
	a.tickets[inflightGate], a.Cancel = spillway.Ticket{}, nil
	if t.By == nil && cancel == nil {
		return false
	}
	limiter, _ := place.Limiter(t.By).(*inflight.Limiter)
	h.Begin(ctx, t, limiter, cancel)
	return true
}

// Release gives back the slot in flight, if nothing has taken it over, and ends the context.
func (a *Attempt) Release(now time.Time, o spillway.Outcome) {
	a.tickets[inflightGate].Settle(now, o)
	if a.Cancel != nil {
		a.Cancel()
		a.Cancel = nil
	}
}

// Accepted settles the throttle, as the answer of the backend has begun. It does nothing for a
// hedge, and the second time.
func (a *Attempt) Accepted() {
	if a.policies == nil || a.tickets[throttleGate].By == nil {
		return
	}
	t, now := a.policies.Throttle, a.Start
	if t.Timed(spillway.OutcomeServed) {
		now = time.Now()
	}
	t.Settle(a.Start, now, &a.tickets[throttleGate], a.Route, spillway.OutcomeServed)
}
