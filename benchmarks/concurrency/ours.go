package main

import (
	"strconv"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/shed"
)

// ours drives the real [shed.Shedder] in virtual time. Its executor is idle, so
// that only the limit on requests in flight rejects. No other file of this
// command depends on the methods of shed.
type ours struct {
	p     *Process
	s     *shed.Shedder
	limit *concurrency.Limiter
}

// A seat is the state of a request in ours.
type seat struct {
	waiter shed.Waiter
	ticket spillway.Ticket
}

// newOurs is a [Maker] of shedders with defaults.
func newOurs(p *Process) Algorithm {
	limit := newLimiter()
	s, err := shed.New(shed.Config{Rand: p.random().Float64, Limit: limit})
	if err != nil {
		panic(err) //nolint:forbidigo // the configuration is a constant of this command
	}
	return &ours{p: p, s: s, limit: limit}
}

func newLimiter() *concurrency.Limiter {
	limit, err := concurrency.New(concurrency.Config{})
	if err != nil {
		panic(err) //nolint:forbidigo // the configuration is a constant of this command
	}
	return limit
}

func keyName(k int) string { return "key " + strconv.Itoa(k) }

// epoch is the wall clock at the start of each run.
var epoch = time.Unix(1_700_000_000, 0)

func wall(p *Process) time.Time { return epoch.Add(p.Now()) }

func (a *ours) now() time.Time { return wall(a.p) }

func (a *ours) state() shed.State { return shed.State{Processors: 2, CPU: a.p.CPU()} }

func callOf(p *Process, r *Request) spillway.Call {
	c := spillway.Call{Key: keyName(r.Key), Criticality: r.Class}
	if d, ok := p.Deadline(r); ok {
		c.Deadline = epoch.Add(d)
	}
	return c
}

func outcomeOf(r *Request, served bool) spillway.Outcome {
	switch {
	case served:
		return spillway.OutcomeServed
	case r.timedOut:
		return spillway.OutcomeTimedOut
	default:
		return spillway.OutcomeAbandoned
	}
}

func (a *ours) Arrive(r *Request) {
	x := &seat{}
	r.Slot, x.waiter.Owner = x, r
	call, state := callOf(a.p, r), a.state()
	d := a.s.Arrive(a.now(), &call, &state, &x.waiter)
	if d.Evicted != nil {
		a.p.Reject(d.Evicted.Owner.(*Request))
	}
	switch d.Verdict {
	case shed.Run:
		x.ticket = d.Ticket
		a.p.Run(r)
	case shed.Wait:
		a.p.Timer(a.p.Now()+d.MaxWait, r)
	case shed.Rejected:
		a.p.Reject(r)
	}
	a.pump()
}

// pump runs or rejects waiting requests until the shedder returns no more.
func (a *ours) pump() {
	for a.s.Waiting() > 0 {
		w, _ := a.s.Next(a.now(), a.state())
		if w == nil {
			return
		}
		r := w.Owner.(*Request)
		if w.Err != nil {
			a.p.Reject(r)
			continue
		}
		r.Slot.(*seat).ticket = w.Ticket
		a.p.Run(r)
	}
}

func (a *ours) Finish(r *Request, served bool) {
	r.Slot.(*seat).ticket.Settle(a.now(), outcomeOf(r, served))
	a.pump()
}

// Suspend implements suspender.
func (a *ours) Suspend(r *Request) {
	r.Slot.(*seat).ticket.Suspend(a.now())
	a.pump()
}

// Resume implements suspender.
func (a *ours) Resume(r *Request) { r.Slot.(*seat).ticket.Resume(a.now()) }

func (a *ours) Leave(r *Request) {
	a.s.Withdraw(&r.Slot.(*seat).waiter)
	a.pump()
}

func (a *ours) Expire(r *Request) {
	if a.s.Expire(&r.Slot.(*seat).waiter) {
		a.p.Reject(r)
	}
	a.pump()
}

func (a *ours) Heartbeat() {
	a.limit.Beat(a.now(), false)
	a.pump()
}

// Explain returns what the picture and -trace show.
func (a *ours) Explain() []level {
	s := a.limit.Stats(a.now())
	k := s.Shared
	for _, other := range s.Keys {
		if other.State > k.State || len(s.Keys) == 2 && k.State == concurrency.Open {
			k = other
		}
	}
	return []level{
		{"in flight", float64(k.InFlight)}, {"limit", k.Limit}, {"parked", float64(k.Parked)},
		{"waiting", float64(a.s.Waiting())}, {"throughput", k.Throughput}, {"base", 1e3 * k.BaseLatency.Seconds()},
		{"wait", 1e3 * k.Wait.Seconds()}, {"state", float64(k.State)},
	}
}
