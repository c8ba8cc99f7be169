package spillxds

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
)

// retries limits the number of retries to a cluster that are in flight, over all strategies
// and clients of the cluster. A retry counts from the decision to make it until its attempt
// has ended, as in Envoy.
type retries struct {
	inflight *inflight.Limiter
	limits   atomic.Pointer[Limits]
	active   atomic.Int64
	rejected atomic.Uint64
}

// allowed is the number of retries that may be in flight now.
func (r *retries) allowed() int64 {
	l := r.limits.Load()
	if l.RetryPercent == 0 {
		return int64(l.Retries)
	}
	share := int64(l.RetryPercent / 100 * float64(r.inflight.Stats(time.Now()).InFlight))
	return max(int64(l.Retries), share)
}

// begin counts a retry, if there may be one more.
func (r *retries) begin() error {
	allowed := r.allowed()
	for {
		n := r.active.Load()
		if n >= allowed {
			r.rejected.Add(1)
			return &retry.NotRetriedError{Reason: retry.ReasonBudget, Capacity: float64(allowed), Cost: 1}
		}
		if r.active.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// A strategy is another one under the limit of a cluster. Each token that it hands
// out for a retry has been counted, and stays so until it is used up.
type strategy struct {
	retry.Strategy
	*retries
}

// Refresh implements [retry.Strategy]. The inner strategy decides first, so that
// only a retry that would be made needs a slot. Without a free slot its token is refunded.
func (s *strategy) Refresh(now time.Time, t retry.Token, f fault.Failure) (retry.Token, error) {
	var next retry.Token
	err := s.settle(t, func() (err error) {
		next, err = s.Strategy.Refresh(now, t, f)
		return err
	})
	if err != nil {
		return next, err
	}
	if err := s.begin(); err != nil {
		_ = s.Strategy.Release(next, fault.Failure{Unsent: true}) // the rejection is what counts
		return retry.Token{}, err
	}
	return next, nil
}

// Succeed implements [retry.Strategy].
func (s *strategy) Succeed(t retry.Token) error {
	return s.settle(t, func() error { return s.Strategy.Succeed(t) })
}

// Release implements [retry.Strategy].
func (s *strategy) Release(t retry.Token, f fault.Failure) error {
	return s.settle(t, func() error { return s.Strategy.Release(t, f) })
}

// settle has the inner strategy use t up, which ends the attempt. If that panics, the attempt has ended, too, and t must not be used again:
// a caller that recovers may release it, and it would count twice.
func (s *strategy) settle(t retry.Token, use func() error) error {
	again, returned := isRetry(t), false
	defer func() {
		if !returned {
			s.end(again, nil)
			_ = s.Strategy.Release(t, fault.Failure{Canceled: true}) // it may be used up
		}
	}()
	err := use()
	returned = true
	s.end(again, err)
	return err
}

// isRetry must be asked before t is used.
func isRetry(t retry.Token) bool { return t.Attempt().Number > 0 }

// end ends the attempt of a token that was given to the inner strategy, which
// answered err: unless it was used before, a retry ends with it.
func (s *strategy) end(again bool, err error) {
	if again && !errors.Is(err, retry.ErrTokenUsed) && !errors.Is(err, retry.ErrForeignToken) {
		s.active.Add(-1)
	}
}
