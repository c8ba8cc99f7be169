package egress

import (
	"context"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/place"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// An Attempt is one try at a call. It is valid only while the func that it was
// passed to runs, and not safe for concurrent use.
type Attempt struct {
	// The retry policy's side: the number of the attempt, and the endpoints
	// that earlier attempts found overloaded.
	*retry.Attempt
	// Start is when the attempt was admitted.
	Start time.Time

	route    throttle.Route
	tickets  [gates]spillway.Ticket
	admitted [gates]bool
	accepts  float64 // what the answer says of the server's accept ratio
}

// Hold takes over the attempt's place in flight, for transports whose answer
// goes on after the send func has returned, such as a streamed body. The caller that
// holds the Ticket must settle it exactly once, when the answer has ended. If
// Hold is not called, the place is given back when the func returns.
func (a *Attempt) Hold() spillway.Ticket {
	t := a.tickets[inflightGate]
	a.tickets[inflightGate] = spillway.Ticket{}
	return t
}

var spare = sync.Pool{New: func() any { return new(Attempt) }}

// attempt makes one attempt, if all gates admit it.
func (p *policies) attempt(
	ctx context.Context, call spillway.Call, by Router, r *retry.Attempt, send func(context.Context, *Attempt) error,
) (err error) {
	a := spare.Get().(*Attempt)
	a.Attempt, a.Start, a.accepts, a.route = r, time.Now(), 1, throttle.Route{Name: call.Key, Namer: by}
	outcome := spillway.Abandoned // unless send returns
	defer func() { p.settle(call, a, outcome, err) }()
	if err := p.admit(call, a); err != nil {
		return err
	}
	if p.shared { // perhaps with the transport
		ctx = place.With(ctx, &a.tickets[inflightGate])
	}
	err = send(ctx, a)
	// A deadline from an untrusted client that is too short says nothing about the backend.
	if outcome = outcomeOf(err); outcome == spillway.TimedOut && claims.Hurried(ctx, a.Start, time.Now()) {
		outcome = spillway.Abandoned
	}
	p.advise(call, a, outcome)
	return err
}

// admit asks each gate in turn, until one refuses.
func (p *policies) admit(call spillway.Call, a *Attempt) error {
	for i := range p.gates {
		g := &p.gates[i]
		if g.mode == spillway.Off {
			continue
		}
		var err error
		if i == throttleGate {
			a.tickets[i], err = p.throttle.Admit(a.Start, call, a.route)
		} else if l := p.byKey[call.Key]; l != nil {
			a.tickets[i], err = l.Admit(a.Start, call)
		} else {
			a.tickets[i], err = g.Admit(a.Start, call)
		}
		if err == nil {
			a.admitted[i] = true
			continue
		}
		if i == inflightGate {
			p.throttle.Limited(a.Start)
		}
		if p.observer != nil {
			e := spillway.Rejection(err)
			e.Time, e.Call, e.Policy, e.Mode = a.Start, call, g.policy, g.mode
			p.observer.Observe(e)
		}
		if g.mode == spillway.Enforce {
			return err
		}
	}
	return nil
}

// settle settles each gate that admitted the attempt with the outcome.
func (p *policies) settle(call spillway.Call, a *Attempt, o spillway.Outcome, err error) {
	now := a.Start
	if p.throttle.Timed(o) {
		now = time.Now()
	}
	p.throttle.Settle(a.Start, now, &a.tickets[throttleGate], a.route, o)
	a.tickets[inflightGate].Settle(a.Start, o)
	if p.observer != nil {
		p.report(call, a, o, err)
	}
	*a = Attempt{}
	spare.Put(a)
}

func (p *policies) report(call spillway.Call, a *Attempt, o spillway.Outcome, err error) {
	e := spillway.Event{Time: a.Start, Latency: time.Since(a.Start), Call: call, Outcome: o, Err: err}
	for i, g := range p.gates {
		if a.admitted[i] {
			e.Policy, e.Mode = g.policy, g.mode
			p.observer.Observe(e)
		}
	}
}

// outcomeOf returns what the error of an attempt says about the backend's load.
func outcomeOf(err error) spillway.Outcome {
	if err == nil {
		return spillway.Served
	}
	switch f := fault.Of(err); {
	case f.Unsent, f.Canceled:
		return spillway.Abandoned
	case f.OverQuota():
		return spillway.OverQuota
	case f.Overload, f.Unprocessed:
		return spillway.Overloaded
	case f.Timeout:
		return spillway.TimedOut
	default:
		return spillway.Failed
	}
}
