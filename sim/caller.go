package sim

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/throttle"
)

// A caller is the client on whose behalf its edge just decides. As its budget, throttle and
// in-flight limit it lets all callers share one stack, and yet have policies of their own.
type caller struct {
	edge   *edge
	client int32
}

type (
	callerThrottle caller
	callerInflight caller
)

// Admit implements [spillway.Gate].
func (c *callerInflight) Admit(now time.Time, call spillway.Call) (spillway.Ticket, error) {
	return c.edge.clients[c.client].active.limiter.Admit(now, call)
}

func (c *callerThrottle) active() *active { return c.edge.clients[c.client].active }

// Admit implements [egress.Throttle]. A throttle that knows of no rejection admits.
func (c *callerThrottle) Admit(now time.Time, call spillway.Call, of throttle.Route) (spillway.Ticket, error) {
	a := c.active()
	if a.throttle == nil {
		return spillway.Ticket{By: a, Criticality: call.Criticality}, nil
	}
	return a.throttle.Admit(now, call, of)
}

// Timed implements [egress.Throttle].
func (c *callerThrottle) Timed(o spillway.Outcome) bool {
	if t := c.active().throttle; t != nil {
		return t.Timed(o)
	}
	return o == spillway.OutcomeTimedOut
}

// Limited implements [egress.Throttle].
func (c *callerThrottle) Limited(now time.Time) {
	if a := c.active(); a.throttle == nil {
		a.limited = now
	} else {
		a.throttle.Limited(now)
	}
}

// Settle implements [egress.Throttle]. While all calls were accepted, it is enough to know
// when: a throttle that receives them later is what it would be.
func (c *callerThrottle) Settle(sent, now time.Time, t *spillway.Ticket, of throttle.Route, o spillway.Outcome) {
	a, none := c.active(), spillway.Ticket{}
	unseen := t.By == spillway.Settler(a)
	if unseen && a.throttle == nil {
		switch {
		case !o.Informs():
			*t = none
			return
		case o.Accepted() && a.known < short:
			a.past[a.known] = int64(sent.Sub(epoch))<<2 | int64(t.Criticality.Index())
			a.known++
			*t = none
			return
		}
		a.remember()
	}
	if unseen {
		*t = a.throttle.Unseen(sent, t.Criticality)
	}
	if a.throttle != nil {
		a.throttle.Settle(sent, now, t, of, o)
	}
}

// Advise implements [egress.Throttle].
func (c *callerThrottle) Advise(now time.Time, class spillway.Criticality, ratio float64) {
	a := c.active()
	if a.throttle == nil {
		if ratio == 1 {
			return
		}
		a.remember()
	}
	a.throttle.Advise(now, class, ratio)
}

// Settle implements [spillway.Settler], by which a ticket shows that it was given out when
// there was no throttle.
func (a *active) Settle(time.Time, spillway.Ticket, spillway.Outcome) {}

// remember makes a throttle, and tells it of the past.
func (a *active) remember() {
	a.throttle = taken(&a.of.throttles)
	_ = a.throttle.Update(a.of.config) // was tried once
	for _, p := range a.past[:a.known] {
		at := epoch.Add(time.Duration(p >> 2))
		t := a.throttle.Unseen(at, spillway.Criticality(p&3)+spillway.Sheddable)
		a.throttle.Settle(at, at, &t, throttle.Route{}, spillway.OutcomeServed)
	}
	if !a.limited.IsZero() {
		a.throttle.Limited(a.limited)
	}
}
