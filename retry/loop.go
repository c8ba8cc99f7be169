package retry

import (
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
)

// A Loop is one call and its retries, for a shell that waits and reads the clock: [Do] is
// one, package egress has another. It takes what happens, and returns the next [Step].
// The zero Loop is ready for Begin. It is not safe for concurrent use, and must not be
// copied while a call is under way.
type Loop struct {
	strategy Strategy
	token    Token
	last     error // last answer of the backend
	sent     int   // attempts
}

// A Step is what to do next: wait, then make another attempt or return Err.
type Step struct {
	// Again says that another attempt is to be made.
	Again bool
	// Wait is how long to wait first. It is not zero for the last Step of a long poll that
	// has no budget left.
	Wait time.Duration
	// Err is what the call ends with if there is no other attempt.
	Err error
}

// Begin begins a call. It ends with a Step that is not Again, with Succeed, or with Stop.
func (l *Loop) Begin(s Strategy, call *spillway.Call) Step {
	l.strategy, l.last, l.sent = s, nil, 0
	l.token = s.Begin(*call)
	return Step{Again: true, Wait: l.token.Delay()}
}

// Attempt returns the data of the next or the current attempt.
func (l *Loop) Attempt() *Attempt { return l.token.Attempt() }

// Succeed ends a call whose attempt has succeeded.
func (l *Loop) Succeed() {
	_ = l.strategy.Succeed(l.token) // the call has succeeded, whatever the strategy makes of it
}

// Fail takes the error of an attempt, and what it means, at the time now. left is the
// error of the caller's context, nil while the caller waits. An attempt that was
// not sent is neither retried nor charged; now is of no matter for it.
func (l *Loop) Fail(now time.Time, err error, f fault.Failure, left error) Step {
	if f.Unsent && f.Safety != fault.RetrySafe {
		_ = l.strategy.Release(l.token, f)
		return Step{Err: WrapError(l.last, err, l.sent)}
	}
	before, sent := l.token.Attempt().before, l.token.Attempt().Number+1 // until the token is used
	next, why := l.strategy.Refresh(now, l.token, f)
	last := l.last
	l.last = err
	l.sent = max(l.sent+1, sent)
	switch {
	case why == nil:
		l.token = next
		if before != nil {
			l.beforeRetry(before)
		}
		return Step{Again: true, Wait: next.Delay()}
	case f.Canceled, left != nil && errors.Is(err, left):
		// What the backend said is in last; err says that the caller left.
		return Step{Err: WrapError(last, err, l.sent)}
	}
	l.token = Token{}
	return Step{Wait: holdOf(why), Err: WrapError(err, why, l.sent)}
}

// Stop ends a call while it waits, for the reason why, and returns what it ends with. The
// retry that was not sent is paid back.
func (l *Loop) Stop(why error) error {
	l.Abort(fault.Failure{Unsent: true})
	return WrapError(l.last, why, l.sent)
}

// Abort ends a call whose func has panicked: what its attempt came to is not known.
func (l *Loop) Abort(f fault.Failure) {
	if l.token != (Token{}) {
		_ = l.strategy.Release(l.token, f)
	}
}

// beforeRetry calls what an attempt has left to do before the next one.
func (l *Loop) beforeRetry(f func(wait time.Duration)) {
	returned := false
	defer func() {
		if !returned {
			l.Abort(fault.Failure{Unsent: true})
		}
	}()
	f(l.token.Delay())
	returned = true
}

// holdOf returns how long to wait before why is returned.
func holdOf(why error) time.Duration {
	if r, ok := errors.AsType[*NotRetriedError](why); ok {
		return max(r.LongPollDelay, 0)
	}
	return 0
}
