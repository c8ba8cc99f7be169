package requests

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/degradation"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// Stats are the levels of the policies of a [Core]. The doc of ingress.Stats describes the fields.
type Stats struct {
	RateLimit      ratelimit.Stats
	Quota          []quota.CustomerStats
	InFlight, Shed shed.Stats
	Concurrency    concurrency.Stats
	Attempts       attempts.Stats
	Degradation    degradation.Stats
	RejectedTotal  [spillway.Outcomes]uint64
	Costs          cost.Stats
	Modes          Modes // a gate without a limit is off
}

// Stats returns the levels of all policies at the time now.
func (c *Core) Stats(now time.Time) Stats {
	st := c.settings.Load()
	all := Stats{
		RateLimit:   st.limiter.Stats(now),
		InFlight:    st.shedders[flightGate].deciding().Stats(now),
		Shed:        st.shedders[shedGate].deciding().Stats(now),
		Concurrency: st.shedders[shedGate].Limit.Stats(now),
		Attempts:    st.histogram.Stats(now),
		Degradation: c.signals.degrader.Stats(now),
		Modes:       modesOf(st.modes),
	}
	for o := range c.rejected {
		all.RejectedTotal[o] = c.rejected[o].Load()
	}
	if st.quota != nil {
		all.Quota = st.quota.Stats(now)
	}
	if st.config.Costs != nil {
		all.Costs = st.config.Costs.Stats(now)
	}
	return all
}

// WantsCaller reports whether Ask and Reject need to know the caller now: there is a rate limit,
// which may exempt it, or a shedder counts callers.
func (c *Core) WantsCaller() bool {
	st := c.settings.Load()
	return st.modes[limitGate] != spillway.ModeOff ||
		st.shedders[shedGate].deciding().TellsCallersApart() || st.shedders[flightGate].deciding().TellsCallersApart()
}

// Charge charges cost to the quota of a customer, apart from requests, in the unit of the quota. It
// does nothing if the quota is off.
func (c *Core) Charge(now time.Time, customer string, cost float64) {
	if st := c.settings.Load(); st.quota != nil && st.modes[quotaGate] != spillway.ModeOff {
		st.quota.ChargeCustomer(now, customer, cost)
	}
}

// Sheds reports whether the shedder enforces.
func (c *Core) Sheds() bool { return c.settings.Load().modes[shedGate] == spillway.ModeEnforce }

// Begun returns how many requests the shedder has admitted since the start.
func (c *Core) Begun(now time.Time) (begun uint64) {
	for _, class := range c.settings.Load().shedders[shedGate].Stats(now).Classes {
		begun += class.AdmittedTotal
	}
	return begun
}

// Degradation returns how far answers to calls of a criticality should be degraded now. It is
// [spillway.DegradationNone] unless the shedder enforces. It allocates nothing and takes no lock.
func (c *Core) Degradation(class spillway.Criticality) spillway.DegradationLevel {
	d := &c.signals.degrader
	if d.Idle() || !c.Sheds() {
		return spillway.DegradationNone
	}
	return d.Level(class)
}

// AcceptRatio returns which share of the calls of a criticality the Core has accepted recently, or
// [shed.RatioOne] if clients must not learn it.
func (c *Core) AcceptRatio(class spillway.Criticality) shed.Ratio {
	if !c.signals.rejects.Load() {
		return shed.RatioOne
	}
	return c.signals.acceptRatio(c.settings.Load(), class)
}
