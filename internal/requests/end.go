package requests

import (
	"time"

	"github.com/seed90641741/spillway"
)

// Change takes in what happens to a request while it runs. If suspends is positive, the request
// waits for its client that many times more; if it is negative, that many of these waits have
// ended. cost is added to what the quota has charged the customer, in the unit of the quota; a
// negative cost is given back.
func (a *Admission) Change(now time.Time, suspends int, cost float64) {
	for range suspends {
		a.tickets[flightGate].Suspend(now)
		a.tickets[shedGate].Suspend(now)
	}
	for range -suspends {
		a.tickets[flightGate].Resume(now)
		a.tickets[shedGate].Resume(now)
	}
	if cost != 0 && a.Chargeable() {
		a.settings.quota.Charge(now, &a.tickets[quotaGate], cost)
	}
}

// Chargeable reports whether a cost can have an effect in Change: whether there is a quota.
func (a *Admission) Chargeable() bool { return a.settings != nil && a.settings.quota != nil }

// Done is End and Report, for a shell whose Observer cannot panic.
func (a *Admission) Done(now time.Time, o spillway.Outcome) (wake bool) {
	wake = a.End(now, o)
	a.Report(now, o)
	return wake
}

// End ends the request with its outcome at the time now, and settles its gates. It reports whether
// requests may leave their queues: then the shell asks [Core.Next]. Report must follow.
func (a *Admission) End(now time.Time, o spillway.Outcome) (wake bool) {
	return a.settings != nil && a.settle(now, o)
}

// Report reports the end of a request to the Observer, after End with the same time and outcome. A
// second Report does nothing.
func (a *Admission) Report(now time.Time, o spillway.Outcome) {
	if a.settings == nil {
		return
	}
	a.reportEnd(now, o, nil)
	a.ended("", spillway.Event{Latency: now.Sub(a.Start), Outcome: o})
	a.settings = nil
}

// reject ends a request that a gate did not admit.
func (a *Admission) reject(now time.Time, gate int, step *Step) {
	step.Wake = a.settle(now, spillway.OutcomeNotStarted) || step.Wake
	a.reportRejection(gate, step.Err)
	a.reportEnd(now, spillway.OutcomeNotStarted, step.Err)
}

// settle settles each gate that admitted the request. The quota comes last, as its Allocator may
// panic. A second settle changes nothing.
func (a *Admission) settle(now time.Time, o spillway.Outcome) (wake bool) {
	wake = a.tickets[flightGate].By != nil || a.tickets[shedGate].By != nil
	a.tickets[flightGate].Settle(now, o)
	a.tickets[shedGate].Settle(now, o)
	if a.settings.config.Costs != nil {
		a.endCost(now, o)
	}
	a.tickets[quotaGate].Settle(now, o)
	return wake
}

// reportEnd reports what settle has settled.
func (a *Admission) reportEnd(now time.Time, o spillway.Outcome, err error) {
	if a.settings.config.Observer != nil {
		for gate, admitted := range a.admitted {
			if !admitted {
				continue
			}
			if later := a.later(gate); later != nil {
				a.report(gate, spillway.Rejection(later))
			} else {
				a.report(gate, spillway.Event{Latency: now.Sub(a.Start), Outcome: o, Err: err})
			}
		}
	}
	a.forgetObserved()
}

// report sends the one event of the request and the gate.
func (a *Admission) report(gate int, e spillway.Event) {
	if o := a.settings.config.Observer; o != nil {
		e.Time, e.Context, e.Call, e.Policy, e.Mode = a.Start, a.Context, a.Call, gateNames[gate], a.settings.modes[gate]
		o.Observe(e)
	}
}

// reportRejection sends the event of a request that a gate did not admit.
func (a *Admission) reportRejection(gate int, err error) {
	if a.settings.config.Observer == nil {
		return
	}
	e := spillway.Rejection(err)
	if e.Reason == spillway.ReasonNone { // the client has left
		e = spillway.Event{Outcome: spillway.OutcomeAbandoned, Err: err}
	}
	a.report(gate, e)
	a.ended(gateNames[gate], e)
}

// ended sends the event of a request that has ended, at a gate or, with an empty name, after all of
// them.
func (a *Admission) ended(gate string, e spillway.Event) {
	if o := a.settings.ends; o != nil {
		e.Time, e.Context, e.Call, e.Policy = a.Start, a.Context, a.Call, gate
		o.ObserveEnd(e)
	}
}
