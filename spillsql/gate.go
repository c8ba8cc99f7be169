package spillsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/calls"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/clock"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/throttle"
)

// A gate is the policies of a Connector with a clock: what each call has to pass.
type gate struct {
	policies  calls.Policies
	routes    *throttle.Routes
	classify  func(error) (fault.Failure, bool)
	conflicts bool
	clock     clock.Clock
}

// An operation is one call to the database: what is sent, and what it may be. It is one piece
// of memory for all that a call has.
type operation struct {
	key  string
	text string // of the statement; may be empty
	send func(context.Context) error
	// describe returns what an error of send means. It is given the meaning as far as the
	// error tells it. Nil where conn is set.
	describe func(error, fault.Failure) fault.Failure

	conn       *conn // of a statement
	repeatable bool  // as it changes nothing
	broken     bool  // the connection
	failed     error // of the last attempt

	flow calls.Flow
}

// do makes a call, with its retries. It returns errors of send, of package retry, and
// rejections.
func (g *gate) do(ctx context.Context, op *operation) error {
	f := &op.flow
	err := g.drive(ctx, f, op)
	if err == nil {
		g.succeed(f)
	}
	return err
}

// succeed ends a call whose last attempt has succeeded.
func (g *gate) succeed(f *calls.Flow) {
	returned := false
	defer func() {
		if !returned { // the Observer panics
			f.Abort()
		}
	}()
	f.Succeed(g.now(f))
	returned = true
}

// drive makes the attempts of a call until one succeeds. The caller then ends f. If the driver,
// Classify or the Observer panics, what the call holds is given back.
func (g *gate) drive(ctx context.Context, f *calls.Flow, op *operation) (err error) {
	returned := false
	defer func() {
		if !returned {
			f.Abort()
		}
	}()
	err = g.attempts(ctx, f, op)
	returned = true
	return err
}

// attempts is drive, but for panics.
func (g *gate) attempts(ctx context.Context, f *calls.Flow, op *operation) error {
	call := callOf(ctx, op.key)
	step := f.Begin(&g.policies, &call, op.route())
	for {
		switch step.Action {
		case calls.Wait:
			step = f.Wait(ctx, &g.clock, step.Wait)
		case calls.Run:
			err := op.attempt(ctx)
			if err == nil {
				if op.conn != nil { // and not that of a connection
					spillway.TaskFrom(ctx).Served()
				}
				return nil
			}
			if unsent(err) {
				g.stop(f, err)
				return err
			}
			now := g.clock.Now()
			step = g.fail(ctx, f, err, op.meaning(err, g.meaning(ctx, err)), now)
		default:
			if step.Final() {
				final.Of(ctx).Set()
			}
			return step.Err
		}
	}
}

// fail takes in that an attempt has failed.
func (g *gate) fail(ctx context.Context, f *calls.Flow, err error, means fault.Failure, now time.Time) calls.Step {
	e := calls.Failure{Err: err, Failure: means, ContextErr: ctx.Err()}
	e.UntrustedDeadline = e.Timeout && claims.UntrustedExpired(ctx, f.Start, now)
	return f.Fail(now, e)
}

// end ends a call with the failure of what is not repeated.
func (g *gate) end(ctx context.Context, f *calls.Flow, err error, means fault.Failure) {
	means.Safety, means.Unprocessed = fault.RetryUnsafe, false
	if step := g.fail(ctx, f, err, means, g.clock.Now()); step.Final() {
		final.Of(ctx).Set()
	}
}

// hold is do for calls whose answer goes on after send has returned. Their place in flight is then kept in place, whose
// End its caller calls when the answer has ended.
func (g *gate) hold(ctx context.Context, op *operation, place *inflight.Hold) error {
	f := &op.flow
	if err := g.drive(ctx, f, op); err != nil {
		return err
	}
	f.Hold(ctx, place)
	returned := false
	defer func() {
		if !returned { // the Observer panics
			place.End()
		}
	}()
	g.succeed(f)
	returned = true
	return nil
}

// rejected reports a rejection by the pool, which it returns.
func (g *gate) rejected(ctx context.Context, err error) error {
	if !errors.Is(err, spillway.ErrRejected) {
		return err
	}
	final.Of(ctx).Set()
	if o := g.policies.Observer; o != nil {
		e := spillway.Rejection(err)
		e.Time, e.Call, e.Policy = g.clock.Now(), callOf(ctx, "connect"), "spillsql"
		o.Observe(e)
	}
	return err
}

// meaning returns what err means, as far as it does not depend on the operation.
func (g *gate) meaning(ctx context.Context, err error) fault.Failure {
	if g.classify != nil {
		if f, ok := g.classify(err); ok {
			return f
		}
	}
	f := classify(err, g.conflicts)
	if f.answered || f.Unsent {
		return f.Failure
	}
	switch ctx.Err() {
	case context.Canceled:
		return fault.Failure{Canceled: true}
	case context.DeadlineExceeded:
		return fault.Failure{Timeout: true, Unanswered: true}
	}
	return f.Failure
}

// stop ends a call that was not sent on this connection. The retry of a call that
// database/sql sends on another connection stays paid for.
func (g *gate) stop(f *calls.Flow, err error) {
	why := fault.Failure{Unsent: true}
	if f.Number > 0 {
		why = fault.Failure{Canceled: true}
	}
	f.Fail(f.Start, calls.Failure{Err: err, Failure: why})
}

// now returns the time for ending f with a success.
func (g *gate) now(f *calls.Flow) time.Time {
	if f.Timed() {
		return g.clock.Now()
	}
	return f.Start
}

// unsent reports whether err says that the driver has sent nothing, in words that
// database/sql acts on: it must get exactly this error.
func unsent(err error) bool {
	return errors.Is(err, driver.ErrSkip) || errors.Is(err, driver.ErrBadConn)
}

func callOf(ctx context.Context, key string) spillway.Call {
	call := spillway.Call{Key: key, Criticality: spillway.CriticalityFrom(ctx)}
	call.Deadline, _ = ctx.Deadline()
	task := spillway.TaskFrom(ctx)
	call.Level, call.Progress = task.Level(), task.Progress()
	call.Idempotent = ctx.Value(idempotentKey{}) != nil
	return call
}
