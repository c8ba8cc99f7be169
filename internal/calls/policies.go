package calls

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// Policies are what calls to one backend have to pass. They must not be changed while a call is
// under way.
type Policies struct {
	Throttle      Throttle
	ThrottleMode  spillway.Mode
	InFlight      spillway.Gate
	InFlightByKey map[string]*inflight.Limiter // in place of Inflight, for calls with these keys
	InFlightMode  spillway.Mode
	Retry         retry.Strategy
	Observer      spillway.Observer // or nil
	Usual         *Usual            // or nil: the wait of a call that timed out explains nothing
	Shares        *Shares           // of the routes in the retries, or nil: first come, first served
}

// A Throttle is what a [Flow] needs of [throttle.Routes].
type Throttle interface {
	Admit(now time.Time, call spillway.Call, of throttle.Route) (spillway.Ticket, error)
	Timed(o spillway.Outcome) bool
	Limited(now time.Time)
	Settle(sent, now time.Time, t *spillway.Ticket, of throttle.Route, o spillway.Outcome)
	Advise(now time.Time, c spillway.Criticality, ratio float64)
	Account(of throttle.Route) string
}

// Gate returns the in-flight limit of calls with a key.
func (p *Policies) Gate(key string) spillway.Gate {
	if l := p.InFlightByKey[key]; l != nil {
		return l
	}
	return p.InFlight
}
