package calls

import (
	"time"

	"github.com/seed90641741/spillway"
)

// admit asks the throttle and then the in-flight limit, and returns the error of the first that
// rejects the attempt and enforces.
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

// hold keeps the ticket of a gate. It copies field by field, as the ticket was just written field
// by field: a copy as a whole would wait until these writes have reached the cache.
func (f *Flow) hold(gate int, t *spillway.Ticket) {
	to := &f.tickets[gate]
	to.By, to.Epoch, to.State = t.By, t.Epoch, t.State
	to.Criticality, to.Suspended, to.Account = t.Criticality, t.Suspended, t.Account
	f.admitted[gate] = true
}

// rejected reports a rejection to the Observer, and returns whether the gate enforces it.
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
	// An attempt without an answer has no accept ratio to report.
	if f.admitted[throttleGate] && (o.Accepted() || o == spillway.OutcomeOverloaded && f.Accepts < 1) {
		f.policies.Throttle.Advise(f.Start, f.Call.Criticality, f.Accepts)
	}
	if hasty {
		f.policies.Throttle.Settle(f.Start, now, &f.tickets[throttleGate], f.Route, spillway.OutcomeAbandoned)
	}
	f.settle(now, o, err)
}

// settleGates settles both tickets. It gives back the in-flight slot even if the throttle panics
// because the Namer of the route does.
func (f *Flow) settleGates(now time.Time, o spillway.Outcome) {
	defer f.Release(f.Start, o)
	f.policies.Throttle.Settle(f.Start, now, &f.tickets[throttleGate], f.Route, o)
}

// settle settles the tickets of the attempt with the outcome, and then reports it to the Observer
// for each gate that admitted the attempt. It settles first, as the Observer may panic.
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
