package serving

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
)

// A Context is the context of a request with the class, the task and the deadline that it was
// admitted with. Most handlers never ask how much time is left, and a timer costs more than
// the rest of the work of an adapter. So the timer starts when a caller first asks for it:
// from then on this is a context of the standard library. If the client has left by then, it
// left before the deadline. A Context is begun once, before it is used.
type Context struct {
	context.Context //nolint:containedctx // of the request: this is a context itself

	deadline time.Time // zero: none but that of the request
	class    spillway.Criticality
	labelled bool // with the class
	level    spillway.DegradationLevel
	claimed  claimed
	task     spillway.Task

	timed atomic.Pointer[timed] // nil until it is asked for or over
}

// claimed says which deadline an untrusted client has set.
type claimed uint8

const (
	claimedNone   claimed = iota
	claimedOwn            // that of the Context
	claimedParent         // that of the context of the request
)

// Begin makes c the context of a request that was admitted, under its context before that.
func (c *Context) Begin(parent context.Context, a *Arrival, level spillway.DegradationLevel) {
	c.Context, c.deadline = parent, a.Call.Deadline
	c.class, c.labelled, c.level = a.Call.Criticality, a.Labelled, level
	if a.claimed {
		c.claimed = claimedOwn
	}
	c.task.Begin(a.Call.Level, a.Call.Progress)
}

// BeginUnder is Begin where parent has the deadline that the client has set, if it has set one.
func (c *Context) BeginUnder(parent context.Context, a *Arrival, level spillway.DegradationLevel) {
	c.Begin(parent, a, level)
	c.claimed = claimedNone
	d, ok := parent.Deadline()
	if !c.deadline.IsZero() && (!ok || c.deadline.Before(d)) {
		return
	}
	if c.deadline = (time.Time{}); ok && a.Edge {
		c.claimed = claimedParent
	}
}

// timed is a context with a deadline, and what ends it.
type timed struct {
	context.Context //nolint:containedctx // as is this

	stop context.CancelFunc
}

// over is for all requests that ended before a caller had asked: before the deadline, and before the
// request's own context.
var over = func() *timed {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	return &timed{ctx, stop}
}()

// classes are contexts that hold a class each, by its index. All requests share
// them.
var classes = [spillway.Criticalities]context.Context{
	spillway.WithCriticality(context.Background(), spillway.Sheddable),
	spillway.WithCriticality(context.Background(), spillway.SheddablePlus),
	spillway.WithCriticality(context.Background(), spillway.Critical),
	spillway.WithCriticality(context.Background(), spillway.CriticalPlus),
}

// levels are contexts that hold a level of degradation each. All requests share
// them.
var levels = [spillway.DegradationLevels]context.Context{
	spillway.DegradationLow:    spillway.WithDegradation(context.Background(), spillway.DegradationLow),
	spillway.DegradationMedium: spillway.WithDegradation(context.Background(), spillway.DegradationMedium),
	spillway.DegradationHigh:   spillway.WithDegradation(context.Background(), spillway.DegradationHigh),
}

// Deadline implements [context.Context].
func (c *Context) Deadline() (time.Time, bool) {
	d, ok := c.Context.Deadline()
	if c.deadline.IsZero() || ok && d.Before(c.deadline) {
		return d, ok
	}
	return c.deadline, true
}

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} {
	if c.deadline.IsZero() {
		return c.Context.Done()
	}
	return c.limit().Done()
}

// Err implements [context.Context].
func (c *Context) Err() error {
	if c.deadline.IsZero() || c.timed.Load() == nil && time.Until(c.deadline) > 0 {
		return c.Context.Err()
	}
	return c.limit().Err() // which is final from now on
}

// Value implements [context.Context]. It knows the context with the timer, if there is one, so that contexts derived from c need no goroutine.
func (c *Context) Value(key any) any {
	if c.labelled {
		if v := classes[c.class.Index()].Value(key); v != nil {
			return v
		}
	}
	if c.level > 0 {
		if v := levels[c.level].Value(key); v != nil {
			return v
		}
	}
	if v := c.task.Value(key); v != nil {
		return v
	}
	if c.claimed != claimedNone && key == (claims.DeadlineKey{}) {
		return c.claimedDeadline()
	}
	if t := c.timed.Load(); t != nil {
		if v := t.Value(key); v != nil {
			return v
		}
	}
	return c.Context.Value(key)
}

// claimedDeadline returns the deadline that an untrusted client has set.
func (c *Context) claimedDeadline() time.Time {
	if c.claimed == claimedOwn {
		return c.deadline
	}
	d, _ := c.Context.Deadline()
	return d
}

// limit returns the context with the deadline.
func (c *Context) limit() *timed {
	if c.timed.Load() == nil {
		ctx, stop := context.WithDeadline(c.Context, c.deadline)
		if !c.timed.CompareAndSwap(nil, &timed{ctx, stop}) {
			stop() // somebody else was first
		}
	}
	return c.timed.Load()
}

// End ends the context at the time now, and returns the error that it ended with
// before, if it did.
func (c *Context) End(now time.Time) error {
	if c.deadline.IsZero() {
		return c.Context.Err()
	}
	if now.Before(c.deadline) && c.Context.Err() == nil && c.timed.CompareAndSwap(nil, over) {
		return nil
	}
	t := c.limit()
	defer t.stop()
	return t.Err()
}

// Stop ends the context now, if it has a deadline of its own.
func (c *Context) Stop() {
	if !c.deadline.IsZero() {
		_ = c.End(time.Now())
	}
}
