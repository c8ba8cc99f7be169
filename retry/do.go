package retry

import (
	"context"
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
)

// Do calls f until it succeeds or s gives up, and waits in between as s says. A nil s is one
// that all callers of this process share: a [Budgeted] with a [Backoff] that begins at 100 ms.
// Use a strategy for each backend where a process calls several, so that one that fails does
// not use up the budget of the others.
//
// f returns nil for success, or an error that [fault.Of] understands. The deadline is that of
// call or of ctx, whichever is earlier; f should limit its attempts by ctx. Do never sleeps
// past the deadline: if the next attempt would come too late, it returns at once. If ctx ends
// while Do waits, the retry that was not sent is paid back. A local rejection by another
// policy, such as a [spillway.RejectedError], is neither retried nor charged.
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
	if s == nil {
		s = standard()
	}
	if d, ok := ctx.Deadline(); ok && (call.Deadline.IsZero() || d.Before(call.Deadline)) {
		call.Deadline = d
	}
	var (
		l   Loop
		now time.Time // of the last failure
	)
	step := l.Begin(s, &call)
	for {
		if step.Wait > 0 || l.sent > 0 {
			if err := step.Sleep(ctx, now, call.Deadline); err != nil {
				return l.Stop(err)
			}
		}
		if !step.Again {
			return step.Err
		}
		err := attempt(ctx, &l, f)
		if err == nil {
			l.Succeed()
			return nil
		}
		failure := fault.Of(err)
		if !failure.Unsent || failure.Safety == fault.RetrySafe {
			now = time.Now()
		}
		step = l.Fail(now, err, failure, ctx.Err())
	}
}

// attempt runs f once. It is apart from Do because a defer outside of loops costs
// only a few nanoseconds.
func attempt(ctx context.Context, l *Loop, f func(ctx context.Context, a *Attempt) error) error {
	returned := false
	defer func() {
		if !returned {
			l.Abort(fault.Failure{})
		}
	}()
	err := f(ctx, l.Attempt())
	returned = true
	return err
}

// Sleep waits as s says, or returns why it did not: ctx has ended, or the attempt would
// come after the deadline of the call, if that is not zero. now is the time of the last
// failure, zero if there was none.
func (s Step) Sleep(ctx context.Context, now, deadline time.Time) error {
	if s.Wait <= 0 {
		if s.Again && !now.IsZero() {
			return ctx.Err()
		}
		return nil
	}
	if now.IsZero() {
		now = time.Now()
	}
	if !deadline.IsZero() && !now.Add(s.Wait).Before(deadline) {
		if !s.Again {
			return nil // Err says why the call ends
		}
		return &NotRetriedError{Reason: ReasonDeadline, Delay: s.Wait}
	}
	timer := time.NewTimer(s.Wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// WrapError returns the error of a call that has ended, for an adapter with a loop of
// its own; [Do] returns the same. err is the last answer of the backend, nil if there
// was none; why is the reason that no attempt followed it: the error of the strategy,
// that of the context, or the local rejection of a retry. attempts is how many were
// sent.
//
// It is why without an answer; err as it is if the one attempt failed in a way that
// no strategy retries; and else an [Error] of both.
func WrapError(err, why error, attempts int) error {
	if err == nil {
		return why
	}
	if r, ok := errors.AsType[*NotRetriedError](why); ok && attempts == 1 && r.Reason.plain() {
		return err
	}
	return &Error{Err: err, Why: why, Reason: reasonOf(why), Attempts: attempts}
}
