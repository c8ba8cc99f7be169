package calls

import (
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// retries are the retries of one call: what [retry.Do] does, without the waits and the attempts.
type retries struct {
	strategy retry.Strategy
	token    retry.Token // of the next or the current attempt; zero if no attempt follows
	last     error       // last answer of the backend
	sent     int         // attempts
}

// begin begins a call, and returns how long to wait before its first attempt.
func (r *retries) begin(s retry.Strategy, call *spillway.Call) time.Duration {
	*r = retries{strategy: s, token: s.Begin(*call)}
	return r.token.Delay()
}

// succeed ends a call whose attempt has succeeded.
func (r *retries) succeed() {
	_ = r.strategy.Succeed(r.token) // the call has succeeded, whatever the strategy makes of it
}

// fail takes the error of an attempt, and what it means, at the time now. left is the error of the
// caller's context. An attempt that was not sent is neither retried nor charged, and now does not
// matter. If end is nil, another attempt follows after the wait. Otherwise the call ends with end;
// a long poll without budget waits first.
func (r *retries) fail(now time.Time, err error, f fault.Failure, left error) (wait time.Duration, end error) {
	if f.Unsent && f.Safety != fault.RetrySafe {
		r.release(f)
		return 0, retry.WrapError(r.last, err, r.sent)
	}
	a := r.token.Attempt() // until the token is used
	before, sent := a.BeforeRetry, max(r.sent, a.Number)+1
	next, why := r.strategy.Refresh(now, r.token, f)
	last := r.last
	r.last, r.sent = err, sent
	if why == nil {
		r.token = next
		r.beforeRetry(before)
		return next.Delay(), nil
	}
	r.token = retry.Token{}
	if f.Canceled || left != nil && errors.Is(err, left) { // err says that the caller left; what the backend said is in last
		return 0, retry.WrapError(last, err, sent)
	}
	if e, ok := errors.AsType[*retry.NotRetriedError](why); ok {
		wait = max(e.LongPollDelay, 0)
	}
	return wait, retry.WrapError(err, why, sent)
}

// stop ends a call while it waits, because of why, and returns what it ends with. The retry that
// was not sent is paid back.
func (r *retries) stop(why error) error {
	r.release(fault.Failure{Unsent: true})
	return retry.WrapError(r.last, why, r.sent)
}

// release ends a call without an answer to its attempt, unless it has ended.
func (r *retries) release(f fault.Failure) {
	if r.token != (retry.Token{}) {
		_ = r.strategy.Release(r.token, f) // the call has ended, whatever the strategy makes of it
	}
}

// beforeRetry calls what an attempt has left to do before the next one.
func (r *retries) beforeRetry(f func(wait time.Duration)) {
	if f == nil {
		return
	}
	returned := false
	defer func() {
		if !returned {
			r.release(fault.Failure{Unsent: true})
		}
	}()
	f(r.token.Delay())
	returned = true
}
