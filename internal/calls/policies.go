package calls

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// Policies are the policies of the calls to one backend. They must not be changed while a call is
// in progress.
type Policies struct {
	Throttle      Throttle
	ThrottleMode  spillway.Mode
	InFlight      spillway.Gate
	InFlightByKey map[string]*inflight.Limiter // replaces InFlight for calls with these keys
	InFlightMode  spillway.Mode
	Retry         retry.Strategy
	Observer      spillway.Observer // or nil
	Usual         *Usual            // if nil, no timeout is excused by the usual latency
	Shares        *Shares           // divides retries among routes, or nil: they are not divided
}

// A Throttle has the methods of [throttle.Routes] that a [Flow] calls.
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
