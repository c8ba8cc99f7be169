package requests

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cost"
)

// A learnedCost is the part of an Admission that concerns Config.Costs.
type learnedCost struct {
	ticket cost.Ticket // zero: the request has ended, or there are no Costs
	extra  float64     // what the quota charges in addition to settings.baseCost, in its unit
}

// costOf returns whose cost a call has. A client may have invented the name of a customer that the
// Allocator does not know.
func (c *Config) costOf(call *spillway.Call) cost.Call {
	of := cost.Call{Customer: call.Customer}
	if c.CostKey != nil {
		of.Route = c.CostKey(*call)
		return of
	}
	of.Known = c.Quota.Allocator != nil && c.Quota.Allocator.Known(call.Customer)
	return of
}

// beginCost begins the cost of a request, and determines what the quota charges for it.
func (a *Admission) beginCost() {
	c := &a.settings.config
	ticket, units, known := c.Costs.Begin(a.Start, c.costOf(&a.Call))
	a.cost = learnedCost{ticket: ticket}
	if known {
		a.cost.extra = units - a.settings.baseCost
	}
}

// measurable reports whether the processor time of the request is to be measured.
func (a *Admission) measurable() bool { return a.settings != nil && a.cost.ticket.Measure() }

// MeasuredHere reports whether the processor time of the request is to be measured, and
// Config.Costs learns from that of this process.
func (a *Admission) MeasuredHere() bool {
	return a.measurable() && a.settings.config.Costs.OfThisProcess()
}

// Used reports that the request was measured to use some processor time. If Config.Costs asks for
// it, the quota charges that in place of what it has charged before. Call Used before End, and
// once.
func (a *Admission) Used(now time.Time, cpu time.Duration) { a.Change(now, 0, a.Correction(cpu)) }

// Correction returns what Used charges in addition to what was charged before. A shell that calls
// it in place of Used passes the result to Change.
func (a *Admission) Correction(cpu time.Duration) (cost float64) {
	if !a.measurable() {
		return 0
	}
	return a.settings.config.Costs.Measured(a.cost.ticket, cpu) - a.cost.extra - a.settings.baseCost
}

// endCost ends the cost of a request with its outcome. The second call for a request changes
// nothing.
func (a *Admission) endCost(now time.Time, o spillway.Outcome) {
	if a.cost.extra != 0 && o == spillway.OutcomeNotStarted && a.tickets[quotaGate].By != nil {
		a.settings.quota.Charge(now, &a.tickets[quotaGate], -a.cost.extra)
	}
	switch costs := a.settings.config.Costs; {
	case a.cost.ticket == cost.Ticket{}: // it has ended
	case o == spillway.OutcomeNotStarted:
		costs.Reject(now)
	default:
		costs.Done(now, a.cost.ticket)
	}
	a.cost = learnedCost{}
}
