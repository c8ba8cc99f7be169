package ingress

import (
	"context"
	"errors"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
)

// Do protects work that is no request: a message of a queue, a job, a step of a batch. It asks the
// gates as [Server.Enter] does, calls work in this goroutine, and ends the call with the outcome of
// work: served if work returns no error, timed out or abandoned if the context of work has ended,
// and failed otherwise, also if work panics. The panic goes on.
//
// The class of call counts, not that of ctx. A call without a Level has that of the Task in ctx, if
// there is one. The context of work has
//   - the class of call, so that calls made for the work have it, too;
//   - a [spillway.Task], unless ctx has one;
//   - the earlier of the deadlines of ctx and call;
//   - the level of degradation.
//
// A wait for an event, such as the next message, is no load: wait for it before Do.
//
// If [Rejection.Rejected] reports true, work was not called, and the error is that of the
// Rejection. Otherwise the error is that of work. A worker that fetches its work waits for
// Rejection.RetryAfter before it fetches more. A worker that a broker sends work to returns the
// work to the broker, to be delivered again after that time. Do is safe for concurrent use, and
// allocates for the context of work alone.
func (s *Server) Do(ctx context.Context, call spillway.Call, work func(context.Context) error) (Rejection, error) {
	if task := spillway.TaskFrom(ctx); task != nil && !call.Level.Valid() {
		call.Level, call.Progress = task.Level(), task.Progress()
	}
	slot, why := s.Enter(ctx, call, ratelimit.Caller{})
	if why.Rejected() {
		return why, why.Err
	}
	call = slot.Call()
	ctx, stop := s.workContext(ctx, &call)
	outcome := spillway.OutcomeFailed
	defer func() {
		stop()
		slot.Done(outcome)
	}()
	err := work(ctx)
	outcome = outcomeOf(ctx, err)
	return why, err
}

// workContext returns the context of admitted work.
func (s *Server) workContext(ctx context.Context, call *spillway.Call) (context.Context, context.CancelFunc) {
	ctx = spillway.WithCriticality(ctx, call.Criticality)
	if spillway.TaskFrom(ctx) == nil {
		task := new(spillway.Task)
		task.Begin(call.Level, call.Progress)
		ctx = spillway.WithTask(ctx, task)
	}
	if level := s.Degradation(call.Criticality); level != spillway.DegradationNone {
		ctx = spillway.WithDegradation(ctx, level)
	}
	if call.Deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, call.Deadline)
}

// outcomeOf is the outcome of work with this error.
func outcomeOf(ctx context.Context, err error) spillway.Outcome {
	ended := ctx.Err()
	switch {
	case err == nil:
		return spillway.OutcomeServed
	case ended == nil:
		return spillway.OutcomeFailed
	case errors.Is(ended, context.DeadlineExceeded):
		return spillway.OutcomeTimedOut
	default:
		return spillway.OutcomeAbandoned
	}
}
