package retry

import (
	"context"
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
)

// Do calls f until it succeeds or s gives up, and waits in between as s says.
//
// What f returns is nil for success, or an error that [fault.Of] understands. The
// decisions go by the deadline of call or of ctx, whichever is earlier; f should
// bound its attempts by ctx. Do never sleeps past the deadline: if the next
// attempt would come too late, it returns at once. If ctx ends while Do waits, the
// retry that was not sent is paid back. A local refusal by another policy, such
// as a [spillway.RejectedError], is neither retried nor charged.
//
// Do returns nil, or an [Error] that wraps the last real answer of the backend and
// says why there was no further attempt. If the first attempt fails in a way that
// no strategy retries, Do returns its error as it is.
//
// The [Attempt] is valid until f returns. If f panics, the token of the attempt
// is released and the panic goes on; the attempt counts as sent. Do reads the
// clock once for each failure, and allocates nothing if the first attempt
// succeeds.
func Do(ctx context.Context, s Strategy, call spillway.Call, f func(ctx context.Context, a *Attempt) error) error {
	if d, ok := ctx.Deadline(); ok && (call.Deadline.IsZero() || d.Before(call.Deadline)) {
		call.Deadline = d
	}
	var (
		now  time.Time // of the last failure
		last error     // real answer of the backend
	)
	t := s.Begin(call)
	for n := 0; ; n++ {
		if n > 0 || t.Delay() > 0 {
			if why := wait(ctx, now, t.Delay(), call.Deadline); why != nil {
				_ = s.Release(t, fault.Failure{Unsent: true})
				return Explain(last, why, n)
			}
		}
		err := attempt(ctx, s, t, f)
		if err == nil {
			_ = s.Succeed(t) // the call has succeeded, whatever s makes of it
			return nil
		}
		failure := fault.Of(err)
		if failure.Unsent {
			_ = s.Release(t, failure)
			return Explain(last, err, n)
		}
		now = time.Now()
		next, why := s.Refresh(now, t, failure)
		switch {
		case why == nil:
			t, last = next, err
		case failure.Canceled, errors.Is(err, ctx.Err()):
			// What the backend said is in last; err says that the caller left.
			return Explain(last, err, n+1)
		default:
			return Explain(err, hold(ctx, now, why, call.Deadline), n+1)
		}
	}
}

// attempt runs f once. It is apart from Do because a defer outside of loops costs
// only a few nanoseconds.
func attempt(ctx context.Context, s Strategy, t Token, f func(ctx context.Context, a *Attempt) error) error {
	returned := false
	defer func() {
		if !returned {
			_ = s.Release(t, fault.Failure{})
		}
	}()
	err := f(ctx, t.Attempt())
	returned = true
	return err
}

// wait waits for d, counted from now (the present if zero), or returns why not.
func wait(ctx context.Context, now time.Time, d time.Duration, deadline time.Time) error {
	if d <= 0 {
		return ctx.Err()
	}
	if now.IsZero() {
		now = time.Now()
	}
	if !deadline.IsZero() && !now.Add(d).Before(deadline) {
		return &RefusedError{Reason: ReasonDeadline, Delay: d}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// hold waits as why asks for before it is returned, and returns the reason to
// stop that came up meanwhile, or why.
func hold(ctx context.Context, now time.Time, why error, deadline time.Time) error {
	r, ok := errors.AsType[*RefusedError](why)
	if !ok || r.Hold <= 0 || wait(ctx, now, r.Hold, deadline) == nil || ctx.Err() == nil {
		return why
	}
	return ctx.Err()
}

// Explain returns the error of a call that has ended, for an adapter with a loop of
// its own; [Do] returns the same. err is the last answer of the backend, nil if there
// was none; why is the reason that no attempt followed it: the error of the strategy,
// that of the context, or the local refusal of a retry. attempts is how many were
// sent.
//
// It is why without an answer; err as it is if the one attempt failed in a way that
// no strategy retries; and else an [Error] of both.
func Explain(err, why error, attempts int) error {
	if err == nil {
		return why
	}
	if r, ok := errors.AsType[*RefusedError](why); ok && attempts == 1 && r.Reason.plain() {
		return err
	}
	return &Error{Err: err, Why: why, Reason: reasonOf(why), Attempts: attempts}
}
