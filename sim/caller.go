package sim

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/throttle"
)

// A caller is one client of an edge. Its policies are made when they are needed, and dropped
// when they know no more than new ones.
type caller struct {
	bucket    *budget.Bucket // nil: as new
	active    *active        // nil: as new
	connected uint64         // tasks of the subset
	turn      uint32         // of the round robin
	good      uint32         // useful answers
}

// active is what there is of a caller only while it calls, and for some time after:
// policies that know more than new ones. A throttle knows nothing once its window
// has passed, and a limiter a minute after the last call.
type active struct {
	limiter  *inflight.Limiter
	throttle *throttle.Routes // nil while the past is short, and has no rejection
	past     [short]int64     // when calls were accepted, and of which class
	known    int              // of past
	limited  time.Time        // when the in-flight limit was reached
	flying   int32            // attempts under way
	open     int32            // connections in use
	queue    queue[ref]       // for one
	used     int64            // when an attempt last ended
}

// short is how many accepted calls a caller can have had without a throttle.
const short = 8

// wake makes what is active of a caller that makes an attempt.
func (e *edge) wake(of int32) {
	c := &e.callers[of]
	if c.active == nil {
		l, _ := inflight.New(inflight.Config{MaxRequests: e.config.Egress.MaxRequests}) // was tried once
		c.active = &active{limiter: l}
	}
	c.active.flying++
}

// settled notes that an attempt has ended, and drops now and then what knows nothing any more.
func (e *edge) settled(c *call) {
	c.gen++
	c.trying = false
	a := e.callers[c.client].active
	a.used = e.now
	a.flying--
	if e.now < e.swept+e.keep {
		return
	}
	e.swept = e.now
	for i := range e.callers {
		if c := &e.callers[i]; c.active != nil && c.active.flying == 0 && c.active.used+e.keep <= e.now {
			c.active = nil
		}
	}
}

// The policies of an edge are those of its current caller: so all callers share one stack, and
// have policies of their own.
type (
	callerBudget   edge
	callerThrottle edge
	callerInflight edge
)

// bucket returns the bucket of the caller, which is made when it is first needed.
func (b *callerBudget) bucket() *budget.Bucket {
	c := &b.callers[b.current]
	if c.bucket == nil {
		c.bucket, _ = budget.New(b.budget) // was tried once
	}
	return c.bucket
}

// Withdraw implements [retry.Budget].
func (b *callerBudget) Withdraw(now time.Time, key string, tokens float64) (left, capacity float64, ok bool) {
	return b.bucket().Withdraw(now, key, tokens)
}

// Deposit implements [retry.Budget]. It leaves out what changes nothing: a full bucket that was
// never used.
func (b *callerBudget) Deposit(key string, tokens float64) {
	if b.callers[b.current].bucket != nil || b.budget.Empty {
		b.bucket().Deposit(key, tokens)
	}
}

// Admit implements [spillway.Gate].
func (l *callerInflight) Admit(now time.Time, call spillway.Call) (spillway.Ticket, error) {
	return l.callers[l.current].active.limiter.Admit(now, call)
}

func (t *callerThrottle) active() *active { return t.callers[t.current].active }

// Admit implements [egress.Throttle]. A throttle that knows of no rejection admits.
func (t *callerThrottle) Admit(now time.Time, call spillway.Call, of throttle.Route) (spillway.Ticket, error) {
	a := t.active()
	if a.throttle == nil {
		return spillway.Ticket{By: a, Criticality: call.Criticality}, nil
	}
	return a.throttle.Admit(now, call, of)
}

// Timed implements [egress.Throttle].
func (t *callerThrottle) Timed(o spillway.Outcome) bool {
	if a := t.active(); a.throttle != nil {
		return a.throttle.Timed(o)
	}
	return o == spillway.OutcomeTimedOut
}

// Limited implements [egress.Throttle].
func (t *callerThrottle) Limited(now time.Time) {
	if a := t.active(); a.throttle == nil {
		a.limited = now
	} else {
		a.throttle.Limited(now)
	}
}

// Settle implements [egress.Throttle]. While all calls were accepted, it is enough to know
// when: a throttle that receives them later is what it would be.
func (t *callerThrottle) Settle(sent, now time.Time, ticket *spillway.Ticket, of throttle.Route, o spillway.Outcome) {
	a := t.active()
	unseen := ticket.By == spillway.Settler(a)
	if unseen && a.throttle == nil && (!o.Informs() || o.Accepted() && a.known < short) {
		if o.Informs() {
			a.past[a.known] = int64(sent.Sub(epoch))<<2 | int64(ticket.Criticality.Index())
			a.known++
		}
		*ticket = spillway.Ticket{}
		return
	}
	if unseen {
		*ticket = t.remember(a).Unseen(sent, ticket.Criticality)
	}
	if a.throttle != nil {
		a.throttle.Settle(sent, now, ticket, of, o)
	}
}

// Advise implements [egress.Throttle].
func (t *callerThrottle) Advise(now time.Time, class spillway.Criticality, ratio float64) {
	if a := t.active(); a.throttle != nil || ratio != 1 {
		t.remember(a).Advise(now, class, ratio)
	}
}

// Settle implements [spillway.Settler], by which a ticket shows that it was given out when
// there was no throttle.
func (a *active) Settle(time.Time, spillway.Ticket, spillway.Outcome) {}

// remember returns the throttle of a caller. If there is none, it makes one, and tells it of the
// past.
func (t *callerThrottle) remember(a *active) *throttle.Routes {
	if a.throttle != nil {
		return a.throttle
	}
	a.throttle, _ = throttle.NewRoutes(t.throttle) // was tried once
	for _, p := range a.past[:a.known] {
		at := epoch.Add(time.Duration(p >> 2))
		ticket := a.throttle.Unseen(at, spillway.Criticality(p&3)+spillway.Sheddable)
		a.throttle.Settle(at, at, &ticket, throttle.Route{}, spillway.OutcomeServed)
	}
	if !a.limited.IsZero() {
		a.throttle.Limited(a.limited)
	}
	return a.throttle
}
