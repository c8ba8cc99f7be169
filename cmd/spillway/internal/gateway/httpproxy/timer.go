package httpproxy

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A timer is the context of a request that is sent on, if the request has a deadline. It ends when the request does, and at the
// deadline. An answer that turns out to be a stream of events or an upgrade stops it: such a stream may last for days, and the
// deadline is that for its beginning. The context of the gate could not be stopped. A call of gRPC keeps its deadline.
type timer struct {
	context.Context //nolint:containedctx // of the request in its gate: this is a context itself

	ends     context.Context //nolint:containedctx // of the request before its gate, and with the alarm
	cancel   context.CancelCauseFunc
	alarm    *time.Timer
	deadline time.Time
	stopped  atomic.Bool
}

// newTimer returns the timer of a request. Its context before the gate has no deadline. [timer.end] must be called.
func newTimer(gate, before context.Context, deadline time.Time) *timer {
	t := &timer{Context: gate, deadline: deadline}
	t.ends, t.cancel = context.WithCancelCause(before)
	t.alarm = time.AfterFunc(time.Until(deadline), func() { t.cancel(context.DeadlineExceeded) })
	return t
}

// stop reports whether there was still time, and removes the deadline if so.
func (t *timer) stop() bool {
	if !t.alarm.Stop() {
		return false
	}
	t.stopped.Store(true)
	return true
}

func (t *timer) end() {
	t.alarm.Stop()
	t.cancel(nil)
}

// Deadline implements [context.Context].
func (t *timer) Deadline() (time.Time, bool) { return t.deadline, !t.stopped.Load() }

// Done implements [context.Context].
func (t *timer) Done() <-chan struct{} { return t.ends.Done() }

// Err implements [context.Context].
func (t *timer) Err() error {
	if err := t.ends.Err(); err == nil || !errors.Is(context.Cause(t.ends), context.DeadlineExceeded) {
		return err
	}
	return context.DeadlineExceeded
}
