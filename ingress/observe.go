package ingress

import (
	"sync"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// observe asks a gate that observes. The request goes on at once, whatever the gate decides: it is in flight there as it really is.
func (a *Admission) observe(gate int, from *ratelimit.Caller) {
	var err error
	switch {
	case gate >= flightGate:
		err = a.watch(gate, from)
	case a.would: // it would not have come here
	case gate == quotaGate:
		err = a.pay()
	case !a.settings.limiter.Exempt(*from):
		err = a.settings.limiter.Observe(a.start, a.call.Deadline)
	}
	if a.would {
		return
	}
	if a.admitted[gate] = err == nil; err != nil {
		a.would = true
		a.report(gate, spillway.Rejection(err))
	}
}

// watch asks a shedder that observes. It returns the rejection that would have been.
func (a *Admission) watch(gate int, from *ratelimit.Caller) (err error) {
	call := &a.call
	if gate == shedGate && a.settings.config.LimitKey != nil {
		named := a.settings.named(call)
		call = &named
	}
	by, state := a.settings.core.shedder(gate, a.start, a.settings)
	state.Runnable = max(0, state.Runnable-a.settings.core.companion)
	switch {
	case a.would:
		a.tickets[gate], _, _ = by.observer.Observe(a.start, call, &state, nil)
		return nil
	case by.observer.Pass(a.start, call, &state, &a.tickets[gate]):
		return nil
	}
	w := places.Get().(*shed.Waiter)
	w.Flow = a.settings.core.flowAt(by.observer, call, from)
	ticket, waits, err := by.observer.Observe(a.start, call, &state, w)
	if a.tickets[gate] = ticket; waits {
		a.places[gate-flightGate] = w
	} else {
		places.Put(w)
	}
	return err
}

// places are the Waiters of requests that would wait.
var places = sync.Pool{New: func() any { return new(shed.Waiter) }}

// later returns why a request would have been rejected after a wait at a gate that observes, or nil.
func (a *Admission) later(gate int) error {
	if gate < flightGate || a.places[gate-flightGate] == nil {
		return nil
	}
	return a.places[gate-flightGate].Err
}

// leavePlaces forgets where the request would have waited. Its Tickets are settled.
func (a *Admission) leavePlaces() {
	for i, w := range a.places {
		if w != nil {
			a.places[i] = nil
			places.Put(w)
		}
	}
}
