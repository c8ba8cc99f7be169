package spillhttp

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
)

// An inherited is the context of a request with the class, the task and the deadline that it was
// admitted with. Most handlers never ask how much time is left, and a timer costs more than
// the rest of the work of a [Handler]. So the timer starts when a caller first asks for it:
// from then on this is a context of the standard library. If the client has left by then, it
// left before the deadline.
type inherited struct {
	context.Context //nolint:containedctx // of the request: this is a context itself

	deadline time.Time // zero: none but that of the request
	class    spillway.Criticality
	labelled bool // with the class
	level    spillway.DegradationLevel
	claimed  bool // an untrusted client set the deadline
	task     spillway.Task

	timed atomic.Pointer[timed] // nil until it is asked for or over
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

func (c *inherited) Deadline() (time.Time, bool) {
	d, ok := c.Context.Deadline()
	if c.deadline.IsZero() || ok && d.Before(c.deadline) {
		return d, ok
	}
	return c.deadline, true
}

func (c *inherited) Done() <-chan struct{} {
	if c.deadline.IsZero() {
		return c.Context.Done()
	}
	return c.limit().Done()
}

func (c *inherited) Err() error {
	if c.deadline.IsZero() || c.timed.Load() == nil && time.Until(c.deadline) > 0 {
		return c.Context.Err()
	}
	return c.limit().Err() // which is final from now on
}

// Value knows the context with the timer, if
// there is one, so that contexts derived from c need no goroutine.
func (c *inherited) Value(key any) any {
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
	if c.claimed && key == (claims.DeadlineKey{}) {
		return c.deadline
	}
	if t := c.timed.Load(); t != nil {
		if v := t.Value(key); v != nil {
			return v
		}
	}
	return c.Context.Value(key)
}

// limit returns the context with the deadline.
func (c *inherited) limit() *timed {
	if c.timed.Load() == nil {
		ctx, stop := context.WithDeadline(c.Context, c.deadline)
		if !c.timed.CompareAndSwap(nil, &timed{ctx, stop}) {
			stop() // somebody else was first
		}
	}
	return c.timed.Load()
}

// end ends the context at the time now, and returns the error that it ended with
// before, if it did.
func (c *inherited) end(now time.Time) error {
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
