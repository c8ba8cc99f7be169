package claims

import (
	"context"
	"time"
)

// DeadlineKey is the key in a context of the deadline, a [time.Time], that a caller has
// set who is not trusted.
type DeadlineKey struct{}

// WithDeadline returns ctx, knowing that its deadline d was set by such a caller.
func WithDeadline(ctx context.Context, d time.Time) context.Context { return &hurried{ctx, d} }

// Hurried reports whether the deadline of ctx is one that a caller has set who is not
// trusted. That it passed says nothing of whoever was called on behalf of that caller:
// else a stranger who leaves no time could have the calls of all others refused.
func Hurried(ctx context.Context) bool {
	claimed, ok := ctx.Value(DeadlineKey{}).(time.Time)
	d, has := ctx.Deadline()
	return ok && has && !d.Before(claimed)
}

type hurried struct {
	context.Context //nolint:containedctx // it is one

	deadline time.Time
}

// Value implements [context.Context].
func (h *hurried) Value(key any) any {
	if key == (DeadlineKey{}) {
		return h.deadline
	}
	return h.Context.Value(key)
}
