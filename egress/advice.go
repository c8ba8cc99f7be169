package egress

import "github.com/seed90641741/spillway"

// Advise reports which share of the calls of this criticality the server says
// that it accepts, from 0 to 1. The throttle starts from it while it has seen few
// calls ([throttle.Throttle.Advise]). An answer for which Advise is not
// called counts as 1. Only pass on what a server says that is trusted as internal.
func (a *Attempt) Advise(ratio float64) { a.accepts = ratio }

// advise passes on to the throttle what the answer to an attempt said. Where no answer
// came there is nothing to tell.
func (p *policies) advise(call spillway.Call, a *Attempt, o spillway.Outcome) {
	if a.admitted[throttleGate] && (o.Accepted() || o == spillway.Overloaded && a.accepts < 1) {
		p.throttle.Advise(a.Start, call.Criticality, a.accepts)
	}
}
