package spillway

import "time"

// A Gate decides, without blocking and without reading a clock, whether a call may proceed at
// the time now. If it admits the call, the caller of Admit must settle the Ticket exactly
// once. A rejection matches [ErrRejected] and comes with the zero Ticket, which needs no
// settling. A Gate is safe for concurrent use.
type Gate interface {
	Admit(now time.Time, call Call) (Ticket, error)
}

// A Settler receives the outcome of an admitted call. It is called by [Ticket.Settle] only,
// and must be safe for concurrent use.
type Settler interface {
	Settle(now time.Time, t Ticket, o Outcome)
}

// A Witness is a [Settler] that is told what a client sees before its request ends. It is called by [Ticket.Answer] and
// [Ticket.Leave] only.
type Witness interface {
	Settler
	// Answer says that the answer begins, Leave that the client has left.
	Answer(now time.Time, t Ticket)
	Leave(now time.Time, t Ticket)
}

// A Suspender is a [Settler] that counts work only. While an admitted request
// waits for its client (for the rest of its body, for the client to read, for the
// next message of a stream) it occupies memory but does no work. A suspended
// request is not counted as work in flight, and its suspended time is not part of
// its latency. It is called by [Ticket.Suspend] and [Ticket.Resume] only.
type Suspender interface {
	Settler
	// Suspend and Resume return the Ticket to continue with.
	Suspend(now time.Time, t Ticket) Ticket
	Resume(now time.Time, t Ticket) Ticket
}

// A Ticket is the right to make one attempt. It is a plain value: a Gate returns it, its
// holder settles it exactly once, and neither allocates. A Ticket must not be copied, and is
// not safe for concurrent use: where two goroutines may each end a call, they agree on which
// one settles. The zero Ticket settles as a no-op.
type Ticket struct {
	// By receives the outcome. Settle clears it, which spends the Ticket.
	By Settler
	// Epoch is for the Gate alone: it distinguishes attempts that were sent before a change of
	// the Gate's state from attempts that were sent after it.
	Epoch uint64
	// State is for the Gate alone.
	State uint64
	// Criticality is the criticality of the admitted call.
	Criticality Criticality
	// Suspended is how many Suspend calls have had no Resume. It is for the Gate
	// alone.
	Suspended uint16
	// Account is for a waiting queue before the Gate alone.
	Account uint32
}

// Suspend reports, at the time now, that the request waits for its client. Calls nest: the
// request works again after as many calls of Resume. A ticket that is settled, or whose Gate
// is not a [Suspender], ignores it. A suspended ticket is settled like any other.
func (t *Ticket) Suspend(now time.Time) {
	if by, ok := t.By.(Suspender); ok {
		*t = by.Suspend(now, *t)
	}
}

// Resume ends one Suspend at the time now.
func (t *Ticket) Resume(now time.Time) {
	if by, ok := t.By.(Suspender); ok && t.Suspended > 0 {
		*t = by.Resume(now, *t)
	}
}

// Answer reports, at the time now, that the answer begins, where it ends much later: a stream, a watch, an upgraded
// connection. The client may leave afterwards: the request was answered. Only the first call of Answer and Leave has an
// effect. A ticket that is settled, or whose Gate is not a [Witness], ignores both.
func (t *Ticket) Answer(now time.Time) {
	if by, ok := t.By.(Witness); ok {
		by.Answer(now, *t)
	}
}

// Leave reports, at the time now, that the client has left while the work goes on. It may be called with a copy of the Ticket.
func (t *Ticket) Leave(now time.Time) {
	if by, ok := t.By.(Witness); ok {
		by.Leave(now, *t)
	}
}

// Settle reports the outcome of the call to the Gate, at the time now. The second and any
// later call does nothing.
func (t *Ticket) Settle(now time.Time, o Outcome) {
	if t.By != nil {
		t.settle(now, o)
	}
}

// settle leaves out By, which is cleared, and copies the other fields one by one. A processor that
// copies a Ticket as a whole waits for the field that was just written.
func (t *Ticket) settle(now time.Time, o Outcome) {
	by := t.By
	t.By = nil
	by.Settle(now, Ticket{Epoch: t.Epoch, State: t.State, Criticality: t.Criticality, Suspended: t.Suspended, Account: t.Account}, o)
}
