package spillaws

import (
	"context"
	"time"

	"github.com/aws/smithy-go/middleware"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// loopID is what the SDK calls its retry loop.
const loopID = "Retry"

// A wrapper takes the place of the SDK's retry loop in the stack of an operation. A middleware of
// the user around it may run the rest of the stack several times, one after the other: each is a call.
type wrapper struct {
	retryer *Retryer
	loop    middleware.FinalizeMiddleware
	first   call // mostly the only one
}

// ID implements [middleware.FinalizeMiddleware].
func (*wrapper) ID() string { return loopID }

// HandleFinalize implements [middleware.FinalizeMiddleware]: it runs the loop.
func (w *wrapper) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	out middleware.FinalizeOutput, md middleware.Metadata, err error,
) {
	c := &w.first
	if c.Context != nil { // it is not the first, whose context others may still have
		c = new(call)
	}
	c.Context, c.retryer, c.send = ctx, w.retryer, next
	defer c.settle(fault.Failure{}) // if the loop panics
	out, md, err = w.loop.HandleFinalize(c, in, (*attempt)(c))
	return out, md, c.end(err)
}

// A call is one call of an operation. It runs the SDK's retry loop, and so sees what the
// methods of a Retryer are not told: where the call begins and ends, and each attempt with
// its outcome. It is also the context of the attempts, by which the methods find it.
type call struct {
	context.Context

	retryer *Retryer
	send    middleware.FinalizeHandler

	phase    phase
	attempts int32       // sent
	token    retry.Token // of the strategy, from due to answered

	release func(error) error // of the SDK's limiter, in adaptive mode
	failure error             // that the strategy was last asked about
	why     error             // it did not lead to another attempt
}

// A phase says how far a call has come.
type phase uint8

const (
	fresh    phase = iota // the Retryer was not asked yet
	due                   // an attempt was granted
	sent                  // it is under way
	answered              // it has ended, which the strategy is yet to be told
	over                  // the strategy knows that the call has ended
)

// Value implements [context.Context]. The key is the Retryer, as a client may
// have been given several.
func (c *call) Value(key any) any {
	if key == any(c.retryer) {
		return c
	}
	return c.Context.Value(key)
}

// callOf returns the call that ctx belongs to, or nil. A call that is under way
// asks nothing: a caller that does is a client without Wrap that is used within
// the attempt, as one for credentials may be.
func (r *Retryer) callOf(ctx context.Context) *call {
	c, ok := ctx.Value(r).(*call)
	if !ok || c.phase == sent {
		return nil
	}
	return c
}

// An attempt is a call as the loop sees it: what sends an attempt.
type attempt call

// HandleFinalize implements [middleware.FinalizeHandler].
func (a *attempt) HandleFinalize(ctx context.Context, in middleware.FinalizeInput) (
	out middleware.FinalizeOutput, md middleware.Metadata, err error,
) {
	if a.phase != due { // another Retryer decides
		return a.send.HandleFinalize(ctx, in)
	}
	a.phase = sent
	a.attempts++
	out, md, err = a.send.HandleFinalize(ctx, in)
	a.phase = answered
	if a.release != nil && !a.retryer.meaning(err).Unsent { // else the service has not seen it
		_ = a.release(err) // the limiter's always returns nil
	}
	return out, md, err
}

// prepare makes the call ready for its next attempt.
func (c *call) prepare(ctx context.Context) error {
	r := c.retryer
	if c.phase == fresh {
		c.token, c.phase = r.strategy.Begin(describe(c.Context)), due
		if err := wait(ctx, c.token.Delay()); err != nil {
			return err
		}
	}
	if r.sender == nil {
		return nil
	}
	var err error
	c.release, err = r.sender.GetAttemptToken(ctx)
	return err
}

// retry asks for another attempt after one that failed with err, and waits until
// it is due. It returns why there is to be none.
func (c *call) retry(ctx context.Context, err error) error {
	f := c.retryer.meaning(err)
	if f.Safety == fault.RetryUnknown {
		f.Safety = fault.RetrySafe // so said IsErrorRetryable, or what the user wrapped around it
	}
	if c.phase == fresh { // a wrapper around the Retryer has no GetAttemptToken
		c.token, c.attempts = c.retryer.strategy.Begin(describe(c.Context)), 1
	}
	c.failure = err
	next, why := c.retryer.strategy.Refresh(time.Now(), c.token, f)
	if why != nil {
		c.phase, c.why = over, hold(ctx, why)
		return c.why
	}
	c.token, c.phase = next, due
	c.why = wait(ctx, next.Delay())
	return c.why
}

// settle reports the end of the call to the strategy, if it does not know. An
// attempt that was sent has failed with f.
func (c *call) settle(f fault.Failure) {
	switch c.phase {
	case fresh, over:
		return
	case due:
		f = fault.Failure{Unsent: true}
	case sent, answered:
	}
	_ = c.retryer.strategy.Release(c.token, f) // the call has failed, whatever it makes of it
	c.phase = over
}

// end settles a call that the loop ended with err, and returns the error of the
// call.
func (c *call) end(err error) error {
	if err == nil {
		if c.phase == answered {
			_ = c.retryer.strategy.Succeed(c.token) // the call has succeeded, whatever it makes of it
			c.phase = over
		}
		return nil
	}
	if c.phase == fresh {
		return err
	}
	var f fault.Failure
	if c.phase == answered {
		f = c.retryer.meaning(err)
	}
	if c.why == nil && (c.phase == due || f.Canceled || f.Unsent) {
		c.why = err
	}
	if f.Unsent {
		c.attempts--
	}
	c.settle(f)
	return c.explain(err)
}

// explain returns the error of a call that the loop ended with err: err itself,
// or both the last answer of the service and why it was not asked again.
func (c *call) explain(err error) error {
	if c.why == nil || c.failure == nil {
		return err
	}
	return retry.WrapError(c.failure, c.why, int(c.attempts))
}
