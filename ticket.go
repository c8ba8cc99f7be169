package spillway

import "time"

// A Gate decides, without blocking and without reading a clock, whether a call
// may go ahead at the time now. If it admits the call, whoever asked must settle
// the Ticket exactly once. A refusal matches [ErrRejected] and comes with the
// zero Ticket, which needs no settling. A Gate is safe for concurrent use.
type Gate interface {
	Admit(now time.Time, call Call) (Ticket, error)
}

// A Settler is the side of a Gate that learns what became of an admitted call.
// It is called by [Ticket.Settle] only, and must be safe for concurrent use.
type Settler interface {
	Settle(now time.Time, t Ticket, o Outcome)
}

// A Ticket is the right to make one attempt. It is a plain value: a Gate hands
// it out, its holder settles it exactly once, and neither allocates. A Ticket
// must not be copied after it was handed out, and is not safe for concurrent
// use: where two goroutines may each end a call, they agree on which one
// settles. The zero Ticket settles as a no-op.
type Ticket struct {
	// By is told the outcome. Settle clears it, which spends the Ticket.
	By Settler
	// Epoch is for the Gate alone: by it a Gate tells an attempt that was sent
	// before its state changed from one that was sent after.
	Epoch uint64
	// Criticality is that of the admitted call.
	Criticality Criticality
}

// Settle tells the Gate what became of the call, at the time now. The second
// and any later call does nothing.
func (t *Ticket) Settle(now time.Time, o Outcome) {
	by := t.By
	if by == nil {
		return
	}
	t.By = nil
	by.Settle(now, *t, o)
}
