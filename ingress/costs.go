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

// knownCustomer returns the customer of a call if the Allocator knows it. All others share
// a key, since clients may have invented their names.
func (c *Config) knownCustomer(call spillway.Call) string {
	if c.Quota.Allocator == nil || !c.Quota.Allocator.Known(call.Customer) {
		return ""
	}
	return call.Customer
}

// beginCost begins a request, and determines what the quota charges for it.
func (a *Admission) beginCost() {
	c := &a.settings.config
	ticket, units, known := c.Costs.Begin(a.start, c.CostKey(a.call))
	a.cost = learnedCost{ticket: ticket}
	if known {
		a.cost.extra = units - a.settings.baseCost
	}
	if a.observed != nil {
		a.observed.cost.extra = a.cost.extra
	}
}

// endCost ends a request with its outcome.
func (a *Admission) endCost(now time.Time, o spillway.Outcome) {
	if a.cost.extra != 0 && o == spillway.OutcomeNotStarted && a.tickets[quotaGate].By != nil {
		a.settings.quota.Charge(now, &a.tickets[quotaGate], -a.cost.extra)
	}
	switch costs := a.settings.config.Costs; {
	case a.cost.ticket == cost.Ticket{}: // of the gates that observe, or it has ended
	case o == spillway.OutcomeNotStarted:
		costs.Reject(now)
	default:
		costs.Done(now, a.cost.ticket)
	}
	a.cost = learnedCost{}
}
