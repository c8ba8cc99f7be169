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

// An Attempt is one attempt of a call, with its tickets. It is not safe for concurrent use.
type Attempt struct {
	*retry.Attempt

	Start   time.Time          // when the attempt was admitted
	Route   throttle.Route     // the route of the call
	Task    *spillway.Task     // the task that the call belongs to, or nil
	Accepts float64            // the accept ratio that the answer reports, 0 to 1; 1 without one
	Cancel  context.CancelFunc // cancels the attempt's own context; nil if it has none

	policies *Policies // nil for a hedge
	tickets  [gates]spillway.Ticket
	admitted [gates]bool
}

// IsHedge reports whether the attempt is a hedge, and not an attempt of a Flow.
func (a *Attempt) IsHedge() bool { return a.policies == nil }

// InFlight returns the ticket of the in-flight limit. It is zero if the attempt holds no slot.
func (a *Attempt) InFlight() *spillway.Ticket { return &a.tickets[inflightGate] }

// Hold moves the in-flight slot to h, which keeps it until h.End or until ctx has ended. It reports
// whether there was anything to move.
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

// Release gives back the in-flight slot, unless Hold has moved it, and cancels the context.
func (a *Attempt) Release(now time.Time, o spillway.Outcome) {
	a.tickets[inflightGate].Settle(now, o)
	if a.Cancel != nil {
		a.Cancel()
		a.Cancel = nil
	}
}

// Accepted settles the ticket of the throttle as served, as the answer of the backend has begun. It
// does nothing for a hedge, and nothing after the first time.
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
