package calls

import (
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// retries makes the retry decisions of one call: it does what [retry.Do] does, without waiting and
// without making the attempts.
type retries struct {
	strategy retry.Strategy
	token    retry.Token // of the current or the next attempt; zero if none follows
	last     error       // the last error that came from the backend
	sent     int         // number of attempts that were sent
}

// begin begins a call, and returns how long to wait before its first attempt.
func (r *retries) begin(s retry.Strategy, call *spillway.Call) time.Duration {
	*r = retries{strategy: s, token: s.Begin(*call)}
	return r.token.Delay()
}

// succeed ends a call whose attempt has succeeded.
func (r *retries) succeed() {
	_ = r.strategy.Succeed(r.token) // the call has succeeded even if the strategy returns an error
}

// fail takes the error of an attempt that failed at the time now, and what it means. left is the
// error of the caller's context. An attempt that was not sent is neither retried nor charged to the
// budget. If end is nil, another attempt follows after the wait. Otherwise the call ends with end,
// after the wait, which is above 0 only for a long poll without budget.
func (r *retries) fail(now time.Time, err error, f fault.Failure, left error) (wait time.Duration, end error) {
	if f.Unsent && f.Safety != fault.RetrySafe {
		r.release(f)
		return 0, retry.WrapError(r.last, err, r.sent)
	}
	a := r.token.Attempt() // valid until the token is used
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
	// If the caller has left, err says that, and last has what the backend said before.
	if f.Canceled || left != nil && errors.Is(err, left) {
		return 0, retry.WrapError(last, err, sent)
	}
	if e, ok := errors.AsType[*retry.NotRetriedError](why); ok {
		wait = max(e.LongPollDelay, 0)
	}
	return wait, retry.WrapError(err, why, sent)
}

// stop ends a call while it waits, and returns its error, which has why in it. The budget gets back
// the token of the retry that was not sent.
func (r *retries) stop(why error) error {
	r.release(fault.Failure{Unsent: true})
	return retry.WrapError(r.last, why, r.sent)
}

// release tells the strategy that the call ends without a result of its attempt, unless the call
// has already ended.
func (r *retries) release(f fault.Failure) {
	if r.token != (retry.Token{}) {
		_ = r.strategy.Release(r.token, f) // the call has ended, even after an error
	}
}

// beforeRetry calls f, the Attempt.BeforeRetry of the attempt that failed, if it is not nil.
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
