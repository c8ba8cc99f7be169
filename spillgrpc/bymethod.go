package spillgrpc

import (
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// byMethod is a Strategy that leaves each call to that of its method.
type byMethod struct {
	imported   *Imported
	throttling *budget.RetryThrottling // nil: none
	all        []*retry.AWSStandard    // each once
}

func newByMethod(m *Imported, throttling *budget.RetryThrottling) *byMethod {
	s := &byMethod{imported: m, throttling: throttling, all: []*retry.AWSStandard{m.none.strategy}}
	seen := map[*retryPolicy]bool{m.none: true}
	for _, p := range m.policies {
		if !seen[p] {
			seen[p] = true
			s.all = append(s.all, p.strategy)
		}
	}
	return s
}

// Begin implements [retry.Strategy]. The Key of the call is the method.
func (s *byMethod) Begin(call spillway.Call) retry.Token {
	return s.imported.policy(call.Key).strategy.Begin(call)
}

// Refresh implements [retry.Strategy]. It counts those failures that gRFC A6 has
// count and for which no retry was wanted, so that the strategy did not ask the
// budget.
func (s *byMethod) Refresh(now time.Time, t retry.Token, f fault.Failure) (next retry.Token, why error) {
	why = s.each(func(of *retry.AWSStandard) (err error) {
		next, err = of.Refresh(now, t, f)
		return err
	})
	if rejected, ok := errors.AsType[*retry.NotRetriedError](why); ok && s.throttling != nil {
		switch rejected.Reason {
		case retry.ReasonAttempts, retry.ReasonDisabled, retry.ReasonDontRetry, retry.ReasonDeadline, retry.ReasonRetryAfter:
			s.throttling.Withdraw(now, "", 1)
		default:
		}
	}
	return next, why
}

// Succeed implements [retry.Strategy].
func (s *byMethod) Succeed(t retry.Token) error {
	return s.each(func(of *retry.AWSStandard) error { return of.Succeed(t) })
}

// Release implements [retry.Strategy].
func (s *byMethod) Release(t retry.Token, f fault.Failure) error {
	return s.each(func(of *retry.AWSStandard) error { return of.Release(t, f) })
}

// each does something with the strategy that a token is of. All others say that it
// is not theirs, and do nothing.
func (s *byMethod) each(do func(*retry.AWSStandard) error) (err error) {
	for _, of := range s.all {
		if err = do(of); !errors.Is(err, retry.ErrForeignToken) {
			break
		}
	}
	return err
}
