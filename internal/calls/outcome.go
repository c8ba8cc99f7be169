package calls

import (
	"context"
	"errors"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/retry"
)

// Final reports whether the answer to the caller's own caller must say "don't retry": the call was
// given up, rejected here, or answered with "don't retry" itself.
func (s *Step) Final() bool { return s.Err != nil && !repeatable(s.Err) && final.Error(s.Err) }

// repeatable reports whether err is the error of a call that would have been retried here but could
// not be, such as a call whose body cannot be replayed. The caller may retry it.
func repeatable(err error) bool {
	stopped, ok := errors.AsType[*retry.Error](err)
	return ok && stopped.Attempts == 1 && stopped.Reason == retry.ReasonUnsent && !errors.Is(stopped.Why, spillway.ErrRejected)
}

// A leftError is the error of a call that was not sent because the caller's context had ended.
type leftError struct{ error }

func (e *leftError) Error() string { return "egress: not sent: " + e.error.Error() }
func (e *leftError) Unwrap() error { return e.error }
func (e *leftError) Timeout() bool { return errors.Is(e.error, context.DeadlineExceeded) }

// Failure implements [fault.Failurer].
func (e *leftError) Failure() fault.Failure {
	return fault.Failure{Unsent: true, Safety: fault.RetryUnsafe, Timeout: e.Timeout(), Canceled: !e.Timeout()}
}

// OutcomeOf returns what a failure says about the backend's load.
func OutcomeOf(f fault.Failure) spillway.Outcome {
	switch {
	case f.Unsent:
		return spillway.OutcomeNotStarted
	case f.Canceled:
		return spillway.OutcomeAbandoned
	case f.OverQuota():
		return spillway.OutcomeOverQuota
	case f.Overload, f.Unprocessed:
		return spillway.OutcomeOverloaded
	case f.Timeout:
		return spillway.OutcomeTimedOut
	default:
		return spillway.OutcomeFailed
	}
}
