package egress

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// Policies are what calls to one backend have to pass. A [Client] makes them of its
// [Config]; a shell of another kind, such as package sim, fills them itself. They must not
// be changed while a call is under way.
type Policies struct {
	Throttle      Throttle
	ThrottleMode  spillway.Mode
	Inflight      spillway.Gate
	InflightByKey map[string]*inflight.Limiter // in place of Inflight, for calls with these keys
	InflightMode  spillway.Mode
	Retry         retry.Strategy
	Observer      spillway.Observer // or nil
	Usual         *Usual            // or nil: the wait of a call that timed out explains nothing
	Shares        *budget.Shares    // of the routes in the retries, or nil: first come, first served
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

// An Action says what the shell of a [Flow] does next.
type Action uint8

const (
	// ActionRun makes the attempt, then calls Succeed or Fail.
	ActionRun Action = iota
	// ActionWait waits as the Step says, then calls Resume, or Stop if it could not.
	ActionWait
	// ActionReject ends the call: a policy of this process has rejected an attempt.
	ActionReject
	// ActionDone ends the call.
	ActionDone
)

// A Step is what to do next, and for how long to wait or with which error the call ends. It
// has no more than four words, so that it stays in registers.
type Step struct {
	Action
	Wait time.Duration
	Err  error
}

// A Flow is one call on its way through the policies, without the time, the waits, and the
// attempts themselves: those are its shell's, which calls the methods in the order that
// the returned Steps say. It is not safe for concurrent use. A zero Flow is ready for
// Begin, and a Flow may Begin again when its call has ended.
type Flow struct {
	Attempt

	ctx    context.Context //nolint:containedctx // for events; nil where nobody observes
	call   spillway.Call
	loop   retry.Loop
	failed time.Time // when the last attempt did; zero if none did
	ending error     // what the call ends with after its last wait
	ends   bool      // that is the last wait
}

// Begin begins a call. The call has its Criticality and Deadline.
func (f *Flow) Begin(p *Policies, call *spillway.Call, by Router) Step {
	f.policies = p
	f.call = *call
	f.route.Name, f.route.Namer = call.Key, by
	f.failed, f.ends = time.Time{}, false
	return Step{Action: ActionWait, Wait: f.loop.Begin(p.Retry, call).Wait}
}

// Resume goes on at the time now, after the wait. left is the error of the caller's context: nil while the
// caller waits. A caller that has left, or whose deadline has passed, sends nothing, and teaches nothing.
func (f *Flow) Resume(now time.Time, left error) Step {
	if f.ends {
		return Step{Action: ActionDone, Err: f.ending}
	}
	r := f.loop.Attempt()
	if n := int16(min(r.Number, math.MaxInt16)); f.call.Attempt != n { // the gates copy the call, and wait for what was just written
		f.call.Attempt = n
	}
	f.Attempt.Attempt = r
	f.Start = now
	f.accepts = 1
	if left == nil && !f.call.Deadline.IsZero() && !now.Before(f.call.Deadline) {
		left = context.DeadlineExceeded
	}
	if left != nil {
		return f.Stop(&leftError{left})
	}
	if err := f.admit(); err != nil {
		f.settle(now, spillway.OutcomeNotStarted, err)
		return Step{Action: ActionReject, Err: f.loop.Fail(now, err, fault.Failure{Unsent: true}, nil).Err}
	}
	return Step{Action: ActionRun}
}

// Timed reports whether Succeed needs the exact time. Otherwise that at which the attempt
// was sent will do, and a clock need not be read.
func (f *Flow) Timed() bool {
	p := f.policies
	return p.Observer != nil || p.Throttle.Timed(spillway.OutcomeServed) || p.Usual.watches(f.Start)
}

// Succeed ends the call: the attempt has succeeded by the time now.
func (f *Flow) Succeed(now time.Time) Step {
	if f.policies.Usual.watches(f.Start) && f.tickets[throttleGate].By != nil { // else it was counted when its answer began
		f.policies.Usual.served(f.route, f.Start, now)
	}
	f.end(now, spillway.OutcomeServed, false, nil)
	if p := f.policies; p.Shares.Watches(f.Start) {
		p.Shares.Served(now, p.Throttle.Account(f.route))
	}
	f.loop.Succeed()
	return Step{Action: ActionDone}
}

// A Failure is how an attempt ended that did not succeed.
type Failure struct {
	Err error
	fault.Failure
	// ContextErr is the error of the caller's context: nil while the caller waits.
	ContextErr error
	// UntrustedDeadline says that an untrusted client set the deadline that has expired, or was too close.
	UntrustedDeadline bool
}

// Fail takes in that the attempt has failed by the time now.
func (f *Flow) Fail(now time.Time, e Failure) Step {
	o := outcomeOf(e.Failure)
	if e.Unanswered && e.ContextErr != nil && o.Informs() { // the caller has ended the attempt, and not the backend
		o = spillway.OutcomeTimedOut
		if !e.Timeout && errors.Is(e.ContextErr, context.Canceled) {
			o = spillway.OutcomeAbandoned
		}
	}
	if e.UntrustedDeadline && (o == spillway.OutcomeTimedOut || e.TooLate) {
		o = spillway.OutcomeAbandoned
	}
	f.end(now, o, f.hasty(now, o, &e), e.Err)
	f.failed = now
	asks, account := f.ask(now, &e.Failure)
	step := f.loop.Fail(now, e.Err, e.Failure, e.ContextErr)
	if !step.Again && step.Wait <= 0 {
		return Step{Action: ActionDone, Err: step.Err}
	}
	f.ending, f.ends = step.Err, !step.Again
	if asks && step.Again {
		f.policies.Shares.Took(now, account)
	}
	return Step{Action: ActionWait, Wait: step.Wait}
}

// ask asks for the share of the route in the retries, if the call needs one, and notes how much that must leave for others.
func (f *Flow) ask(now time.Time, e *fault.Failure) (asks bool, account string) {
	if f.policies.Shares == nil || e.Unsent || e.OverQuota() || !e.Retryable(f.call.Idempotent || f.call.Kind == spillway.KindRead) {
		return false, ""
	}
	account = f.policies.Throttle.Account(f.route)
	f.Leave = f.policies.Shares.Ask(now, account)
	return true, account
}

// hasty reports whether a call had less time than calls of its route usually take. That it got no answer, or was
// rejected for its deadline, then says nothing about the backend.
func (f *Flow) hasty(now time.Time, o spillway.Outcome, e *Failure) bool {
	switch {
	case !o.Informs():
		return false
	case e.TooLate:
		return !f.call.Deadline.IsZero() && f.policies.Usual.explains(f.route, now, f.call.Deadline.Sub(f.Start), 0)
	default:
		return o == spillway.OutcomeTimedOut && e.Unanswered && f.policies.Usual.explains(f.route, now, now.Sub(f.Start), usualGrace)
	}
}

// Stop ends a call during a wait, because of why.
func (f *Flow) Stop(why error) Step {
	return Step{Action: ActionDone, Err: f.loop.Stop(why)}
}

// Abort gives back what the attempt holds, after a panic.
func (f *Flow) Abort() {
	f.settle(f.Start, spillway.OutcomeAbandoned, nil)
	f.loop.Abort(fault.Failure{})
}

// admit asks each gate in turn, until one rejects.
func (f *Flow) admit() error {
	p := f.policies
	if p.ThrottleMode != spillway.ModeOff {
		t, err := p.Throttle.Admit(f.Start, f.call, f.route)
		if err == nil {
			f.hold(throttleGate, &t)
		} else if f.rejected("throttle", p.ThrottleMode, err) {
			return err
		}
	}
	if p.InflightMode == spillway.ModeOff {
		return nil
	}
	t, err := p.gate(f.call.Key).Admit(f.Start, f.call)
	if err == nil {
		f.hold(inflightGate, &t)
		return nil
	}
	p.Throttle.Limited(f.Start)
	if f.rejected("inflight", p.InflightMode, err) {
		return err
	}
	return nil
}

// hold keeps the ticket of a gate. It copies the fields one by one: a processor that copies as a
// whole what was just written by fields waits until they are in its cache.
func (f *Flow) hold(gate int, t *spillway.Ticket) {
	to := &f.tickets[gate]
	to.By, to.Epoch, to.State = t.By, t.Epoch, t.State
	to.Criticality, to.Suspended, to.Account = t.Criticality, t.Suspended, t.Account
	f.admitted[gate] = true
}

// rejected reports a rejection, and reports whether it counts.
func (f *Flow) rejected(policy string, mode spillway.Mode, err error) bool {
	if o := f.policies.Observer; o != nil {
		e := spillway.Rejection(err)
		e.Time, e.Context, e.Call, e.Policy, e.Mode = f.Start, f.ctx, f.call, policy, mode
		o.Observe(e)
	}
	return mode == spillway.ModeEnforce
}

// end ends an attempt that was made. If it was hasty, the throttle does not learn from the outcome.
func (f *Flow) end(now time.Time, o spillway.Outcome, hasty bool, err error) {
	// Where no answer came there is nothing to tell.
	if f.admitted[throttleGate] && (o.Accepted() || o == spillway.OutcomeOverloaded && f.accepts < 1) {
		f.policies.Throttle.Advise(f.Start, f.call.Criticality, f.accepts)
	}
	if hasty {
		f.policies.Throttle.Settle(f.Start, now, &f.tickets[throttleGate], f.route, spillway.OutcomeAbandoned)
	}
	f.settle(now, o, err)
}

// settleGates gives back the place in flight also if the Router panics, which the throttle may call.
func (f *Flow) settleGates(now time.Time, o spillway.Outcome) {
	defer f.release(f.Start, o)
	f.policies.Throttle.Settle(f.Start, now, &f.tickets[throttleGate], f.route, o)
}

// settle settles each gate that admitted the attempt with the outcome, before the Observer, which may panic, hears of any.
func (f *Flow) settle(now time.Time, o spillway.Outcome, err error) {
	p, admitted := f.policies, f.admitted
	f.admitted = [gates]bool{}
	f.settleGates(now, o)
	if p.Observer != nil {
		e := spillway.Event{Time: f.Start, Latency: now.Sub(f.Start), Context: f.ctx, Call: f.call, Outcome: o, Err: err}
		if admitted[throttleGate] {
			e.Policy, e.Mode = "throttle", p.ThrottleMode
			p.Observer.Observe(e)
		}
		if admitted[inflightGate] {
			e.Policy, e.Mode = "inflight", p.InflightMode
			p.Observer.Observe(e)
		}
	}
}
