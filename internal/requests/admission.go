package requests

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A Step is what the shell has to do with a request.
type Step struct {
	// Verdict is
	//   - [shed.Run]: the shell serves the request, and calls [Admission.End] when it has ended;
	//   - [shed.Wait]: the request waits. The shell calls Expire after For, or Withdraw if the
	//     client leaves before, or Proceed if the Waiter leaves its queue before;
	//   - [shed.Rejected]: the shell answers with the [Admission.Rejection]. The request has ended.
	Verdict shed.Verdict
	// Wake says that requests may leave their queues: the shell asks [Core.Next].
	Wake bool
	// For is the maximum wait.
	For time.Duration
	// Waiter represents the request in its queue. It is nil if the request waits for a token of the
	// rate limit. Its Owner is for the shell.
	Waiter *shed.Waiter
	// Evicted, if not nil, is the Waiter of another request, which must Proceed.
	Evicted *shed.Waiter
	// Err is why the request was rejected: a *[spillway.RejectedError], or the error that Withdraw
	// was given.
	Err error
}

// An Admission is the way of one request through the gates of a [Core]. It is not safe for
// concurrent use. The zero Admission is ready for [Core.Begin], and so is one that has ended.
// That of an exempt request stays as it was, and End, Report and Change of it do nothing.
type Admission struct {
	// Context is for events. The shell sets it, after Begin, or leaves it nil.
	Context context.Context //nolint:containedctx // each event of the request has it
	// Call is the call as it was admitted. The shell may set its Deadline between Begin and Ask.
	Call spillway.Call
	// Start is the time by which the gates decide: when the request began, or when it has left the
	// queue of a gate and the next one was asked. Latencies are counted from it.
	Start time.Time

	settings    *settings              // those that the request began with; nil: the Admission has ended
	gate        uint8                  // the next gate that is asked
	admitted    [gates]bool            // by these gates, which have not reported the end
	behind      bool                   // the request runs, and will wait for others behind a limit
	wouldReject bool                   // a gate that observes would have rejected it: no further one decides
	waiter      *shed.Waiter           // while it waits in a queue
	reservation *ratelimit.Reservation // while it waits for a token

	tickets  [gates]spillway.Ticket           // of the gates that admitted it; the rate limit has none
	observed [gates - flightGate]*shed.Waiter // at gates that observe and would have it wait
	cost     learnedCost
}

// Proceed goes on with a request whose Waiter has left its queue.
func (a *Admission) Proceed(now time.Time, from *ratelimit.Caller) Step {
	w := a.waiter
	err := w.Err
	a.tickets[a.last()] = w.Ticket
	a.waiter = nil
	a.settings.core.waiters.Put(w)
	if a.last() == flightGate {
		a.Start = now // the shedder comes next
	}
	return a.decided(now, err, from)
}

// Expire goes on with a request that has waited for the maximum time. It reports false, and changes
// nothing, if the Waiter has just left its queue: then Proceed.
func (a *Admission) Expire(now time.Time, from *ratelimit.Caller) (Step, bool) {
	if a.reservation != nil {
		return a.leave(now, nil, from), true
	}
	if a.waiter == nil || !a.settings.shedders[a.last()].Expire(a.waiter) {
		return Step{}, false
	}
	return a.Proceed(now, from), true
}

// Withdraw ends a request whose client has left while it waited, with the error err. It reports
// false, and changes nothing, if the Waiter has just left its queue: then Proceed.
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

// Abandon gives back what a request holds after code of the user (an Observer, a Signal, an
// Allocator) has panicked. It reports nothing to the Observer. It reports false, and changes
// nothing, if the Waiter has just left its queue: the shell calls Abandon again, with left, when
// Next or another request has handed it over.
func (a *Admission) Abandon(now time.Time, left bool) (ended bool) {
	if a.settings == nil {
		return true
	}
	if w := a.waiter; w != nil {
		if left {
			w.Ticket.Settle(now, spillway.OutcomeNotStarted)
		} else if !a.settings.shedders[a.last()].Withdraw(w) {
			return false
		}
		a.waiter = nil
		a.settings.core.waiters.Put(w)
	}
	if a.reservation != nil {
		a.reservation.End(now)
		a.reservation = nil
	}
	a.settle(now, spillway.OutcomeNotStarted)
	return true
}

// Waiter returns what represents the request in its queue, or nil if it does not wait in one.
func (a *Admission) Waiter() *shed.Waiter { return a.waiter }

// Behind reports whether the request runs, and will wait for others behind a limit.
func (a *Admission) Behind() bool { return a.behind }

// Queues reports whether the request has passed a gate that has a queue.
func (a *Admission) Queues() bool { return a.settings.queues }

// Shedder returns the ticket of the shedder. It is zero if the shedder has not admitted the
// request.
func (a *Admission) Shedder() *spillway.Ticket { return &a.tickets[shedGate] }

// leave ends the wait for a token of the rate limit. A token that is not due yet is given back.
func (a *Admission) leave(now time.Time, err error, from *ratelimit.Caller) Step {
	a.Start = now
	a.reservation.End(now)
	a.reservation = nil
	return a.decided(now, err, from)
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

// last returns the gate that was asked last.
func (a *Admission) last() int { return int(a.gate) - 1 }
