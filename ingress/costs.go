package ingress

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cost"
)

// A learnedCost is the part of an Admission that concerns Config.Costs.
type learnedCost struct {
	ticket cost.Ticket
	extra  float64 // to what the quota charges
}

// costOf returns whose cost a call has. A customer that the Allocator does not know may have invented its name.
func (c *Config) costOf(call *spillway.Call) cost.Call {
	of := cost.Call{Customer: call.Customer}
	if c.CostKey != nil {
		of.Route = c.CostKey(*call)
		return of
	}
	of.Known = c.Quota.Allocator != nil && c.Quota.Allocator.Known(call.Customer)
	return of
}

// beginCost begins a request, and determines what the quota charges for it.
func (a *Admission) beginCost() {
	c := &a.settings.config
	ticket, units, known := c.Costs.Begin(a.start, c.costOf(&a.call))
	a.cost = learnedCost{ticket: ticket}
	if known {
		a.cost.extra = units - a.settings.baseCost
	}
}

// measurable reports whether the processor time of a request is to be measured.
func (a *Admission) measurable() bool { return a.settings != nil && a.cost.ticket.Measure() }

// Used reports that the request was measured to use some processor time. If Config.Costs asks for it, the quota charges
// that in place of what it has charged before. Call it before Done, and once.
func (a *Admission) Used(now time.Time, cpu time.Duration) { a.change(now, 0, a.correction(cpu)) }

// correction returns what is to be charged in addition for a request that was measured.
func (a *Admission) correction(cpu time.Duration) (cost float64) {
	if !a.measurable() {
		return 0
	}
	return a.settings.config.Costs.Measured(a.cost.ticket, cpu) - a.cost.extra - a.settings.baseCost
}

// endCost ends a request with its outcome.
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
