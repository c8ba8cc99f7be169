package sim

import (
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
)

// reply is what a task says to a request.
type reply uint8

const (
	served      reply = iota + 1
	broken            // the task has crashed over it
	overloaded        // this task has too much to do
	hopeless          // overloaded; don't retry
	overQuota         // this customer asks for too much
	unreachable       // nobody is there to be connected to
	failing           // a call that the request depends on has failed
)

// scopes are the scopes of rejections.
var scopes = [...]fault.Scope{
	overloaded: fault.ScopeTask, hopeless: fault.ScopeService, overQuota: fault.ScopeCustomer,
}

// An attemptError is the error of an attempt that failed, as an adapter would make it.
type attemptError fault.Failure

func (*attemptError) Error() string { return "sim: the attempt failed" }

// Failure implements [fault.Failurer].
func (e *attemptError) Failure() fault.Failure { return fault.Failure(*e) }

// failure is what an adapter makes of the reply. A hint above zero says when to
// come back.
func (a reply) failure(hint time.Duration) fault.Failure {
	switch a {
	case overloaded, hopeless, overQuota:
		f := fault.Failure{Overload: true, Unprocessed: true, Party: fault.Server}
		f.DontRetry = a == hopeless || a == overQuota && hint <= 0
		f.Scope = scopes[a]
		f.RetryAfter, f.HasRetryAfter = hint, hint > 0
		return f
	case unreachable:
		return fault.Failure{Unprocessed: true, Party: fault.Server}
	case broken, failing:
		return fault.Failure{Party: fault.Server}
	default:
		return fault.Failure{}
	}
}

// outcome is the result of a call.
type outcome uint8

const (
	good outcome = iota + 1
	late
	rejectedThrottle
	rejectedInflight
	rejectedByBackend
	timedOut
	failed
)

// outcome is the result of a call whose last reply this is.
func (a reply) outcome() outcome {
	switch a {
	case served:
		return good
	case overloaded, hopeless, overQuota:
		return rejectedByBackend
	default:
		return failed
	}
}

// rejection is the result of a call that a policy of its caller has rejected.
func rejection(err error) outcome {
	if e, ok := errors.AsType[*spillway.RejectedError](err); ok && e.Reason == spillway.ReasonThrottle {
		return rejectedThrottle
	}
	return rejectedInflight
}
