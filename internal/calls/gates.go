package calls

import (
	"time"

	"github.com/seed90641741/spillway"
)

// admit asks each gate in turn, until one rejects.
func (f *Flow) admit() error {
	p := f.policies
	if p.ThrottleMode != spillway.ModeOff {
		t, err := p.Throttle.Admit(f.Start, f.Call, f.Route)
		if err == nil {
			f.hold(throttleGate, &t)
		} else if f.rejected("throttle", p.ThrottleMode, err) {
			return err
		}
	}
	if p.InFlightMode == spillway.ModeOff {
		return nil
	}
	t, err := p.Gate(f.Call.Key).Admit(f.Start, f.Call)
	if err == nil {
		f.hold(inflightGate, &t)
		return nil
	}
	p.Throttle.Limited(f.Start)
	if f.rejected("inflight", p.InFlightMode, err) {
		return err
	}
	return nil
}

// hold keeps the ticket of a gate. It copies the fields one by one: a processor that copies as a
// whole what was just written by fields waits until they are in its cache.
func (f *Flow) hold(gate int, t *spillway.Ticket) {
	to := &f.tickets[gate]
	to.By, to.Epoch, to.State = t.By, t.Epoch, t.State
	to.Criticality, to.Suspended, to.Account = t.Criticality, t.Suspended, t.Account
	f.admitted[gate] = true
}

// rejected reports a rejection, and reports whether it counts.
func (f *Flow) rejected(policy string, mode spillway.Mode, err error) bool {
	if o := f.policies.Observer; o != nil {
		e := spillway.Rejection(err)
		e.Time, e.Context, e.Call, e.Policy, e.Mode = f.Start, f.Context, f.Call, policy, mode
		o.Observe(e)
	}
	return mode == spillway.ModeEnforce
}

// end ends an attempt that was made. If it was hasty, the throttle does not learn from the outcome.
func (f *Flow) end(now time.Time, o spillway.Outcome, hasty bool, err error) {
	// Where no answer came there is nothing to tell.
	if f.admitted[throttleGate] && (o.Accepted() || o == spillway.OutcomeOverloaded && f.Accepts < 1) {
		f.policies.Throttle.Advise(f.Start, f.Call.Criticality, f.Accepts)
	}
	if hasty {
		f.policies.Throttle.Settle(f.Start, now, &f.tickets[throttleGate], f.Route, spillway.OutcomeAbandoned)
	}
	f.settle(now, o, err)
}

// settleGates gives back the slot in flight also if the Namer of the route panics, which the
// throttle may call.
func (f *Flow) settleGates(now time.Time, o spillway.Outcome) {
	defer f.Release(f.Start, o)
	f.policies.Throttle.Settle(f.Start, now, &f.tickets[throttleGate], f.Route, o)
}

// settle settles each gate that admitted the attempt with the outcome, before the Observer, which
// may panic, hears of any.
func (f *Flow) settle(now time.Time, o spillway.Outcome, err error) {
	p, admitted := f.policies, f.admitted
	f.admitted = [gates]bool{}
	f.settleGates(now, o)
	if p.Observer != nil {
		e := spillway.Event{Time: f.Start, Latency: now.Sub(f.Start), Context: f.Context, Call: f.Call, Outcome: o, Err: err}
		if admitted[throttleGate] {
			e.Policy, e.Mode = "throttle", p.ThrottleMode
			p.Observer.Observe(e)
		}
		if admitted[inflightGate] {
			e.Policy, e.Mode = "inflight", p.InFlightMode
			p.Observer.Observe(e)
		}
	}
}
