package calls

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/clock"
	"github.com/seed90641741/spillway/internal/delay"
	"github.com/seed90641741/spillway/retry"
)

// An Action says what the shell of a [Flow] does next.
type Action uint8

const (
	// Run makes the attempt, then calls Succeed or Fail.
	Run Action = iota
	// Wait waits for Step.Wait, then calls Resume, or Stop if the wait was cut short.
	Wait
	// Reject ends the call: a policy of this process has rejected an attempt.
	Reject
	// Done ends the call, with Step.Err or with success.
	Done
)

// A Step is what the shell does next, with the time to wait or the error of the call. It has at
// most four machine words, so that it is returned in registers.
type Step struct {
	Action
	Wait time.Duration
	Err  error
}

// A Flow is one call on its way through the policies. Its shell reads the clock, waits and makes
// the attempts, and calls the methods in the order that the returned Steps say. It is not safe for
// concurrent use. A zero Flow is ready for Begin, and a Flow may Begin again when its call has
// ended.
type Flow struct {
	Attempt

	// Call is the call; its Attempt is the number of the last attempt. Begin sets it.
	Call spillway.Call
	// Context is the context of the call, for events. It is nil without an Observer.
	Context context.Context //nolint:containedctx // see above

	retries retries
	failed  time.Time // when the last attempt failed; zero if none did
	ending  error     // the error of the call once its last wait is over; nil if an attempt follows
}

// Begin begins a call, whose Criticality and Deadline must be set. by names its route; if it is
// nil, the route is the Key of the call.
func (f *Flow) Begin(p *Policies, call *spillway.Call, by interface{ Route() string }) Step {
	f.policies = p
	f.Call = *call
	f.Route.Name, f.Route.Namer = call.Key, by
	f.failed, f.ending = time.Time{}, nil
	return Step{Action: Wait, Wait: f.retries.begin(p.Retry, call)}
}

// Resume goes on at the time now, after the wait. left is the error of the caller's context: nil
// while the caller waits. If the caller has left, or the deadline has passed, nothing is sent and
// no policy learns anything.
func (f *Flow) Resume(now time.Time, left error) Step {
	if f.ending != nil {
		return Step{Action: Done, Err: f.ending}
	}
	r := f.retries.token.Attempt()
	// A write just before the gates copy the call would delay them.
	if n := int16(min(r.Number, math.MaxInt16)); f.Call.Attempt != n {
		f.Call.Attempt = n
	}
	f.Attempt.Attempt = r
	f.Start = now
	f.Accepts = 1
	if left == nil && !f.Call.Deadline.IsZero() && !now.Before(f.Call.Deadline) {
		left = context.DeadlineExceeded
	}
	if left != nil {
		return f.Stop(&leftError{left})
	}
	if err := f.admit(); err != nil {
		f.settle(now, spillway.OutcomeNotStarted, err)
		_, err = f.retries.fail(now, err, fault.Failure{Unsent: true}, nil)
		return Step{Action: Reject, Err: err}
	}
	return Step{Action: Run}
}

// Timed reports whether Succeed needs the current time. Otherwise the shell passes Start, and need
// not read the clock.
func (f *Flow) Timed() bool {
	p := f.policies
	return p.Observer != nil || p.Throttle.Timed(spillway.OutcomeServed) || p.Usual.watches(f.Start)
}

// Succeed ends the call, whose attempt has succeeded by the time now.
func (f *Flow) Succeed(now time.Time) Step {
	// A call without a ticket was counted when its answer began.
	if f.policies.Usual.watches(f.Start) && f.tickets[throttleGate].By != nil {
		f.policies.Usual.served(f.Route, f.Start, now)
	}
	f.end(now, spillway.OutcomeServed, false, nil)
	if p := f.policies; p.Shares.Watches(f.Start) {
		p.Shares.Served(now, p.Throttle.Account(f.Route))
	}
	f.retries.succeed()
	return Step{Action: Done}
}

// A Failure says how an attempt failed.
type Failure struct {
	Err error
	fault.Failure
	// ContextErr is the error of the caller's context: nil while the caller waits.
	ContextErr error
	// UntrustedDeadline says that the deadline which has expired, or was too close, was set by an
	// untrusted client.
	UntrustedDeadline bool
}

// Fail ends an attempt that has failed by the time now. The next Step is a wait for another
// attempt, or the end of the call.
func (f *Flow) Fail(now time.Time, e Failure) Step {
	o := OutcomeOf(e.Failure)
	if e.Unanswered && e.ContextErr != nil && o.Informs() { // the caller has ended the attempt
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
	wait, end := f.retries.fail(now, e.Err, e.Failure, e.ContextErr)
	if end != nil && wait <= 0 {
		return Step{Action: Done, Err: end}
	}
	f.ending = end
	if asks && end == nil {
		f.policies.Shares.Took(now, account)
	}
	return Step{Action: Wait, Wait: wait}
}

// ask asks Shares for a retry if the failure can be retried, and sets Leave, the number of tokens
// that the retry must leave in the budget for other routes. It returns whether it asked, and for
// which account.
func (f *Flow) ask(now time.Time, e *fault.Failure) (asks bool, account string) {
	if f.policies.Shares == nil || e.Unsent || e.OverQuota() || !e.Retryable(f.Call.Idempotent || f.Call.Kind == spillway.KindRead) {
		return false, ""
	}
	account = f.policies.Throttle.Account(f.Route)
	f.Leave = f.policies.Shares.Ask(now, account)
	return true, account
}

// hasty reports whether a call had less time than calls of its route usually take. If so, a missing
// answer, or a rejection because of the deadline, says nothing about the backend.
func (f *Flow) hasty(now time.Time, o spillway.Outcome, e *Failure) bool {
	switch {
	case !o.Informs():
		return false
	case e.TooLate:
		return !f.Call.Deadline.IsZero() && f.policies.Usual.explains(f.Route, now, f.Call.Deadline.Sub(f.Start), 0)
	default:
		return o == spillway.OutcomeTimedOut && e.Unanswered && f.policies.Usual.explains(f.Route, now, now.Sub(f.Start), usualGrace)
	}
}

// Wait waits for d, the Wait of a Step, and then resumes or stops the call. It is for shells in
// real time.
func (f *Flow) Wait(ctx context.Context, c *clock.Clock, d time.Duration) Step {
	if d > 0 || !f.failed.IsZero() {
		switch err := delay.Sleep(ctx, f.failed, d, f.Call.Deadline); {
		case err == nil:
		case !errors.Is(err, delay.ErrTooLate):
			return f.Stop(err)
		case f.ending == nil:
			return f.Stop(&retry.NotRetriedError{Reason: retry.ReasonDeadline, Delay: d})
		}
	}
	return f.Resume(c.Now(), ctx.Err())
}

// Stop ends a call during a wait. why becomes part of its error.
func (f *Flow) Stop(why error) Step {
	return Step{Action: Done, Err: f.retries.stop(why)}
}

// Abort ends a call after a panic, and gives back the tickets of its attempt.
func (f *Flow) Abort() {
	f.settle(f.Start, spillway.OutcomeAbandoned, nil)
	f.retries.release(fault.Failure{})
}
