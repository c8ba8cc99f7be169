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

// An attemptError is the error of an attempt that failed, as an adapter would make it.
type attemptError fault.Failure

func (attemptError) Error() string { return "sim: the attempt failed" }

// Failure implements [fault.Failurer].
func (e attemptError) Failure() fault.Failure { return fault.Failure(e) }

// failure is what an adapter makes of the reply. A hint above zero says when to
// come back.
func (a reply) failure(hint time.Duration) fault.Failure {
	f := replies[a].failure
	if f.Overload && hint > 0 {
		f.RetryAfter, f.HasRetryAfter, f.DontRetry = hint, true, a == hopeless
	}
	return f
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

// replies say what each reply means to the caller.
var replies = [...]struct {
	outcome outcome // of a call whose last reply it is
	failure fault.Failure
}{
	served:      {outcome: good},
	broken:      {failed, fault.Failure{Unanswered: true, Party: fault.Server}},
	overloaded:  {rejectedByBackend, fault.Failure{Overload: true, Unprocessed: true, Party: fault.Server, Scope: fault.ScopeTask}},
	hopeless:    {rejectedByBackend, fault.Failure{Overload: true, Unprocessed: true, Party: fault.Server, Scope: fault.ScopeService, DontRetry: true}},
	overQuota:   {rejectedByBackend, fault.Failure{Overload: true, Unprocessed: true, Party: fault.Server, Scope: fault.ScopeCustomer, DontRetry: true}},
	unreachable: {failed, fault.Failure{Unprocessed: true, Unanswered: true, Party: fault.Server}},
	failing:     {failed, fault.Failure{Party: fault.Server}},
}

// rejections are the replies of the server policies, by how far a rejection reaches.
var rejections = [...]reply{
	fault.ScopeUnknown: overloaded, fault.ScopeTask: overloaded, fault.ScopeService: hopeless, fault.ScopeCustomer: overQuota,
}

// rejection is the result of a call that a policy of its caller has rejected.
func rejection(err error) outcome {
	if e, ok := errors.AsType[*spillway.RejectedError](err); ok && e.Reason == spillway.ReasonThrottle {
		return rejectedThrottle
	}
	return rejectedInflight
}
