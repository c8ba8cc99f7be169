package retry

import (
	"context"
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/delay"
)

// Do calls f until it succeeds or s gives up, and waits in between as s says. A nil s means a
// strategy that all callers of this process share: a [Budgeted] with a [Backoff] that begins at 100
// ms. If a process calls several backends, use a strategy for each, so that a failing backend does
// not use up the budget of the others.
//
// f returns nil for success, or an error that [fault.Of] understands. The deadline is that of call
// or of ctx, whichever is earlier; f should limit its attempts by ctx. Do never waits past the
// deadline: if the next attempt would come too late, it returns at once. If ctx ends during a wait,
// the retry that was not sent is paid back. A rejection by another policy in this process, such as
// a [spillway.RejectedError], is neither retried nor charged.
//
// Do returns nil, or an [Error] that wraps the last answer of the backend and says why no attempt
// followed it. If the first attempt fails in a way that no strategy retries, Do returns its error
// unchanged.
//
// The [Attempt] is valid until f returns. If f panics, Do releases the token of the attempt and the
// panic continues; the attempt counts as sent. Do reads the clock once for each failure, and
// allocates nothing if the first attempt succeeds.
func Do(ctx context.Context, s Strategy, call spillway.Call, f func(ctx context.Context, a *Attempt) error) error {
	if s == nil {
		s = standard()
	}
	if d, ok := ctx.Deadline(); ok && (call.Deadline.IsZero() || d.Before(call.Deadline)) {
		call.Deadline = d
	}
	l := loop{strategy: s, token: s.Begin(call), deadline: call.Deadline}
	for {
		if err := l.wait(ctx); err != nil {
			l.release(fault.Failure{Unsent: true})
			return WrapError(l.last, err, l.sent)
		}
		err := l.attempt(ctx, f)
		if err == nil {
			_ = s.Succeed(l.token) // the call has succeeded, even if the strategy returns an error
			return nil
		}
		if err = l.fail(ctx, err); err != nil {
			return err
		}
	}
}

// A loop is one call of Do.
type loop struct {
	strategy Strategy
	token    Token     // of the current or the next attempt
	deadline time.Time // zero means none
	last     error     // last answer of the backend; nil: none
	failed   time.Time // when the last attempt failed
	sent     int       // attempts that were sent
}

// wait waits until the next attempt is due, or returns why it is not made.
func (l *loop) wait(ctx context.Context) error {
	d := l.token.Delay()
	if d <= 0 && l.sent == 0 {
		return nil
	}
	err := delay.Sleep(ctx, l.failed, d, l.deadline)
	if errors.Is(err, delay.ErrTooLate) {
		return &NotRetriedError{Reason: ReasonDeadline, Delay: d}
	}
	return err
}

// attempt runs f once. It is separate from Do because a defer outside of loops costs only a few
// nanoseconds.
func (l *loop) attempt(ctx context.Context, f func(ctx context.Context, a *Attempt) error) error {
	returned := false
	defer func() {
		if !returned {
			l.release(fault.Failure{})
		}
	}()
	err := f(ctx, l.token.Attempt())
	returned = true
	return err
}

// fail handles the error of an attempt. It returns the error with which the call ends, or nil if
// another attempt follows. An attempt that was not sent is neither retried nor charged.
func (l *loop) fail(ctx context.Context, err error) error {
	f := fault.Of(err)
	if f.Unsent && f.Safety != fault.RetrySafe {
		l.release(f)
		return WrapError(l.last, err, l.sent)
	}
	l.failed = time.Now()
	a := l.token.Attempt() // valid until the token is used
	before, sent := a.BeforeRetry, max(l.sent, a.Number)+1
	next, why := l.strategy.Refresh(l.failed, l.token, f)
	last := l.last
	l.last, l.sent = err, sent
	switch left := ctx.Err(); {
	case why == nil:
		l.token = next
		l.beforeRetry(before)
		return nil
	// The caller has left, and err says only that. The last answer of the backend, if any, is in
	// last.
	case f.Canceled, left != nil && errors.Is(err, left):
		return WrapError(last, err, sent)
	}
	return WrapError(err, l.hold(ctx, why), sent)
}

// beforeRetry calls f, the BeforeRetry of the last attempt.
func (l *loop) beforeRetry(f func(wait time.Duration)) {
	if f == nil {
		return
	}
	returned := false
	defer func() {
		if !returned {
			l.release(fault.Failure{Unsent: true})
		}
	}()
	f(l.token.Delay())
	returned = true
}

// hold waits before a long poll ends with the error why. It returns why, or the error of ctx if ctx
// ends first.
func (l *loop) hold(ctx context.Context, why error) error {
	r, ok := errors.AsType[*NotRetriedError](why)
	if !ok || r.LongPollDelay <= 0 {
		return why
	}
	if err := delay.Sleep(ctx, l.failed, r.LongPollDelay, l.deadline); err != nil && !errors.Is(err, delay.ErrTooLate) {
		return err
	}
	return why
}

// release ends a call whose attempt got no answer. The call has ended, even if the strategy returns
// an error.
func (l *loop) release(f fault.Failure) { _ = l.strategy.Release(l.token, f) }

// WrapError returns the error of a call that has ended, for an adapter with its own loop; [Do]
// returns the same. err is the last answer of the backend, or nil. why is the reason that no
// attempt followed it: the error of the strategy, that of the context, or the rejection of a retry
// in this process. attempts is the number of attempts that were sent.
//
// Without an answer, it returns why. If the only attempt failed in a way that no strategy retries,
// it returns err unchanged. Otherwise it returns an [Error] with both.
func WrapError(err, why error, attempts int) error {
	if err == nil {
		return why
	}
	if r, ok := errors.AsType[*NotRetriedError](why); ok && attempts == 1 && r.Reason.plain() {
		return err
	}
	return &Error{Err: err, Why: why, Reason: reasonOf(why), Attempts: attempts}
}
