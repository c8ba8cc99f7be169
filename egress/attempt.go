package egress

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/calls"
	"github.com/seed90641741/spillway/retry"
)

// An Attempt is one try at a call. It is valid only while the func that it was
// passed to runs, and not safe for concurrent use.
type Attempt struct {
	// The retry policy's part has the number of the attempt, and the endpoints that earlier
	// attempts found overloaded.
	*retry.Attempt
	// Start is when the attempt was admitted.
	Start time.Time

	core *calls.Attempt
}

// Task returns the task that the call belongs to, or nil. Adapters send its level, and its progress
// at the time of the attempt, to services that they send the criticality to.
func (a *Attempt) Task() *spillway.Task { return a.core.Task }

// IsHedge reports whether the attempt is a hedge, which runs at the same time as the first attempt.
func (a *Attempt) IsHedge() bool { return a.core.IsHedge() }

// Hold moves the attempt's in-flight slot to h, which keeps it after the send func has returned. It
// is for transports whose answer goes on then, such as a streamed body. The slot is given back by
// h.End, or when ctx has ended, whichever is first. Hold reports whether h holds anything. Without
// Hold, the slot is given back when the func returns.
func (a *Attempt) Hold(ctx context.Context, h *inflight.Hold) bool { return a.core.Hold(ctx, h) }

// GiveBack gives the attempt's in-flight slot back now. It is for calls that only wait at the
// backend from now on.
func (a *Attempt) GiveBack() { a.core.InFlight().Settle(a.Start, spillway.OutcomeAbandoned) }

// Accepted reports that the backend has accepted the attempt, as its answer has begun. The throttle
// counts the attempt now, and not when the answer ends: a stream may end after hours, or be
// canceled, which says nothing about the backend. The attempt stays in flight. If Accepted is not
// called, the throttle counts the result of the attempt. It does not count hedges.
func (a *Attempt) Accepted() { a.core.Accepted() }

// Advise passes on the share of the calls of this criticality that the server reports to accept,
// from 0 to 1. The throttle starts from it while it has seen few calls
// ([throttle.Throttle.Advise]). An answer for which Advise is not called counts as 1. Only pass on
// what a server says that is trusted as internal.
func (a *Attempt) Advise(ratio float64) { a.core.Accepts = ratio }
