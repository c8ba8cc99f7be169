package requests

import (
	"sync"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// observe asks a gate that observes. The request goes on at once, whatever the gate decides, and
// is in flight there as it really is.
func (a *Admission) observe(gate int, from *ratelimit.Caller) {
	var err error
	switch {
	case gate >= flightGate:
		err = a.watch(gate, from)
	case a.wouldReject: // the request would not have come to this gate
	case gate == quotaGate:
		err = a.pay()
	case !a.settings.limiter.Exempt(*from):
		err = a.settings.limiter.Observe(a.Start, a.Call.Deadline)
	}
	if a.wouldReject {
		return
	}
	if a.admitted[gate] = err == nil; err != nil {
		a.wouldReject = true
		a.report(gate, spillway.Rejection(err))
	}
}

// watch asks a shedder that observes. It returns the rejection that the mode enforce would have
// made.
func (a *Admission) watch(gate int, from *ratelimit.Caller) (err error) {
	call, core := &a.Call, a.settings.core
	if gate == shedGate && a.settings.config.LimitKey != nil {
		named := a.settings.named(call)
		call = &named
	}
	by, state := core.shedder(gate, a.Start, a.settings)
	state.Runnable = max(0, state.Runnable-core.Companions)
	switch {
	case a.wouldReject:
		a.tickets[gate], _, _ = by.observer.Observe(a.Start, call, &state, nil) // without a Waiter it decides nothing
		return nil
	case by.observer.Pass(a.Start, call, &state, &a.tickets[gate]):
		return nil
	}
	w := observedWaiters.Get().(*shed.Waiter)
	w.Flow = flowAt(by.observer, call, from, core.Secret)
	ticket, waits, err := by.observer.Observe(a.Start, call, &state, w)
	if a.tickets[gate] = ticket; waits {
		a.observed[gate-flightGate] = w
	} else {
		observedWaiters.Put(w)
	}
	return err
}

// observedWaiters has the Waiters of requests that would wait if the gate did not only observe. No
// goroutine waits with them, so they need no channel and no timer, which the Waiters of packages
// like ingress have.
var observedWaiters = sync.Pool{New: func() any { return new(shed.Waiter) }}

// later returns why a gate that observes would have rejected the request after a wait, or nil.
func (a *Admission) later(gate int) error {
	if gate < flightGate || a.observed[gate-flightGate] == nil {
		return nil
	}
	return a.observed[gate-flightGate].Err
}

// forgetObserved gives back the Waiters of gates that observe. The tickets of the request are
// settled, so no Shedder uses them any more.
func (a *Admission) forgetObserved() {
	for i, w := range a.observed {
		if w != nil {
			a.observed[i] = nil
			observedWaiters.Put(w)
		}
	}
}
