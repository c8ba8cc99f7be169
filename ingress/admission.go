package ingress

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// The gates, in order.
const (
	limitGate = iota
	quotaGate
	flightGate
	shedGate
	gates
)

var gateNames = [gates]string{"ratelimit", "quota", "inflight", "shed"}

// A Step is what to do with a request.
type Step struct {
	// Verdict is
	//   - [shed.Run]: serve the request, and call Done of the Admission when it has ended;
	//   - [shed.Wait]: call Expire after For, Withdraw if the client leaves before, or
	//     Proceed if Waiter leaves its queue before;
	//   - [shed.Rejected]: answer with the Rejection of the Admission. It has ended.
	Verdict shed.Verdict
	// Wake says that requests may leave their queues: ask [Core.Next].
	Wake bool
	// For is the maximum wait.
	For time.Duration
	// Waiter is the place of the request in a queue, nil if it waits for a token of the
	// rate limit. The Owner of it is for the caller.
	Waiter *shed.Waiter
	// Evicted, if not nil, is the Waiter of another request, which must Proceed.
	Evicted *shed.Waiter
	// Err is why the request was rejected: a *[spillway.RejectedError], or what
	// Withdraw was given.
	Err error
}

// An Admission is the way of one request through the gates of a [Core], all with the
// settings that it began with. It is not safe for concurrent use. The zero Admission is
// ready for [Core.Enter]; that of an exempt request stays zero and ends as a no-op.
type Admission struct {
	settings    *settings       // nil: it has ended
	ctx         context.Context //nolint:containedctx // for events; nil without a shell
	call        spillway.Call
	start       time.Time // when the request came to the gate
	gate        uint8     // the next
	admitted    [gates]bool
	behind      bool                   // it runs, and will wait for others
	would       bool                   // a gate that observes would have rejected it: no further one decides
	waiter      *shed.Waiter           // while it waits in a queue
	reservation *ratelimit.Reservation // while it waits for a token

	tickets [gates]spillway.Ticket           // the rate limit has no Ticket
	places  [gates - flightGate]*shed.Waiter // where it would wait, at gates that observe
	cost    learnedCost
}

// Proceed goes on with a request whose Waiter has left its queue.
func (a *Admission) Proceed(now time.Time, from *ratelimit.Caller) Step {
	w := a.waiter
	err := w.Err
	a.tickets[a.last()] = w.Ticket
	a.waiter = nil
	a.settings.core.waiters.Put(w)
	if a.last() == flightGate {
		a.start = now // the shedder comes next
	}
	return a.decided(now, err, from)
}

// Expire goes on with a request that has waited for the maximum time. The Step may have it wait
// for longer. It reports false, and changes nothing, if the Waiter has just left its queue: then
// Proceed.
func (a *Admission) Expire(now time.Time, from *ratelimit.Caller) (Step, bool) {
	switch {
	case a.reservation != nil:
		return a.leave(now, nil, from), true
	case a.waiter == nil:
		return Step{}, false
	}
	if !a.settings.shedders[a.last()].Expire(a.waiter) {
		return Step{}, false
	}
	return a.Proceed(now, from), true
}

// Withdraw ends a request whose client has left while it waited, with the error err. It
// reports false, and changes nothing, if the Waiter has just left its queue: then Proceed.
func (a *Admission) Withdraw(now time.Time, err error) (Step, bool) {
	if a.reservation != nil {
		return a.leave(now, err, nil), true
	}
	if a.waiter == nil || !a.settings.shedders[a.last()].Withdraw(a.waiter) {
		return Step{}, false
	}
	a.waiter.Ticket, a.waiter.Err = spillway.Ticket{}, err
	return a.Proceed(now, nil), true
}

// leave ends the wait for a token, which is given back if its time has not come.
func (a *Admission) leave(now time.Time, err error, from *ratelimit.Caller) Step {
	a.start = now
	a.reservation.End(now)
	a.reservation = nil
	return a.decided(now, err, from)
}

// last returns the gate that was asked last.
func (a *Admission) last() int { return int(a.gate) - 1 }

// advance asks the gates that come next. It reports whether all have admitted the request;
// if not, step says what to do. A Step is too large to be returned on this path.
func (a *Admission) advance(from *ratelimit.Caller, step *Step) (runs bool) {
	decided := false
	defer func() {
		if !decided { // a Signal or an Observer has panicked
			a.settle(a.start, spillway.OutcomeNotStarted)
		}
	}()
	for gate := int(a.gate); gate < gates; gate++ {
		switch a.settings.modes[gate] {
		case spillway.ModeEnforce:
			if a.ask(gate, from, step) {
				a.admitted[gate] = true
				continue
			}
			a.gate = uint8(gate) + 1
			if step.Verdict == shed.Rejected {
				a.reject(a.start, gate, step)
			}
			decided = true
			return false
		case spillway.ModeObserve:
			a.observe(gate, from)
		default: // not asked
		}
	}
	step.Verdict, decided = shed.Run, true
	return true
}

// decided takes in the result of a wait, and asks the gates that come next.
func (a *Admission) decided(now time.Time, err error, from *ratelimit.Caller) Step {
	step := Step{Verdict: shed.Rejected, Err: err}
	if err != nil {
		a.reject(now, a.last(), &step)
		return step
	}
	a.admitted[a.last()] = true
	a.advance(from, &step)
	return step
}

// reject ends a request that a gate did not admit.
func (a *Admission) reject(now time.Time, gate int, step *Step) {
	step.Wake = a.settle(now, spillway.OutcomeNotStarted) || step.Wake
	a.reportRejection(gate, step.Err)
	a.reportEnd(now, spillway.OutcomeNotStarted, step.Err)
}

// change is [Slot.Suspend], [Slot.Resume] where suspends is negative, and [Slot.Charge].
func (a *Admission) change(now time.Time, suspends int, cost float64) {
	for range suspends {
		a.tickets[flightGate].Suspend(now)
		a.tickets[shedGate].Suspend(now)
	}
	for range -suspends {
		a.tickets[flightGate].Resume(now)
		a.tickets[shedGate].Resume(now)
	}
	if cost != 0 && a.settings != nil && a.settings.quota != nil {
		a.settings.quota.Charge(now, &a.tickets[quotaGate], cost)
	}
}

// Done ends the request with its outcome at the time now. Any second call does nothing.
// It reports whether requests may leave their queues: then ask [Core.Next].
func (a *Admission) Done(now time.Time, o spillway.Outcome) (wake bool) {
	if a.settings == nil {
		return false
	}
	wake = a.settle(now, o)
	a.reportDone(now, o)
	a.settings = nil
	return wake
}

// settle settles each gate that admitted the request, before the observer, which may panic, hears of any. The quota comes last, as
// its Allocator may panic, too.
func (a *Admission) settle(now time.Time, o spillway.Outcome) (wake bool) {
	wake = a.tickets[flightGate].By != nil || a.tickets[shedGate].By != nil
	a.tickets[flightGate].Settle(now, o)
	a.tickets[shedGate].Settle(now, o)
	if a.settings.config.Costs != nil {
		a.endCost(now, o)
	}
	a.tickets[quotaGate].Settle(now, o)
	return wake
}

// reportDone reports the end of a request that all gates admitted.
func (a *Admission) reportDone(now time.Time, o spillway.Outcome) {
	a.reportEnd(now, o, nil)
	a.ended("", spillway.Event{Latency: now.Sub(a.start), Outcome: o})
}

// reportEnd reports what settle has settled.
func (a *Admission) reportEnd(now time.Time, o spillway.Outcome, err error) {
	if a.settings.config.Observer != nil {
		for gate, admitted := range a.admitted {
			if !admitted {
				continue
			}
			if later := a.later(gate); later != nil {
				a.report(gate, spillway.Rejection(later))
			} else {
				a.report(gate, spillway.Event{Latency: now.Sub(a.start), Outcome: o, Err: err})
			}
		}
	}
	a.leavePlaces()
}

// report sends the one event of the request and the gate.
func (a *Admission) report(gate int, e spillway.Event) {
	if o := a.settings.config.Observer; o != nil {
		e.Time, e.Context, e.Call, e.Policy, e.Mode = a.start, a.ctx, a.call, gateNames[gate], a.settings.modes[gate]
		o.Observe(e)
	}
}

// reportRejection sends the event of a request that a gate did not admit.
func (a *Admission) reportRejection(gate int, err error) {
	if a.settings.config.Observer == nil {
		return
	}
	e := spillway.Rejection(err)
	if e.Reason == spillway.ReasonNone { // the client has left
		e = spillway.Event{Outcome: spillway.OutcomeAbandoned, Err: err}
	}
	a.report(gate, e)
	a.ended(gateNames[gate], e)
}

// ended sends the event of a request that has ended, at a gate or, with an empty name, after all of them.
func (a *Admission) ended(gate string, e spillway.Event) {
	if o := a.settings.ends; o != nil {
		e.Time, e.Context, e.Call, e.Policy = a.start, a.ctx, a.call, gate
		o.ObserveEnd(e)
	}
}
