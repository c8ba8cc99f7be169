package claims

import (
	"context"
	"time"
)

// DeadlineKey is the key in a context of the deadline, a [time.Time], that an untrusted
// caller has set.
type DeadlineKey struct{}

// UntrustedExpired reports whether a call that began under ctx has by now reached a deadline
// that an untrusted caller has set. That says nothing about the backend that was called on behalf of
// that caller: otherwise an untrusted client with a short deadline could have the calls of all
// others rejected. A much shorter timeout of this process does say something about the
// backend.
func UntrustedExpired(ctx context.Context, began, now time.Time) bool {
	d, ok := untrusted(ctx)
	// The backend receives a slightly shorter timeout, and may have given up by itself.
	return ok && d.Sub(now) <= d.Sub(began)/10+time.Millisecond
}

// Untrusted reports whether an untrusted caller has set the deadline of ctx, expired or not.
func Untrusted(ctx context.Context) bool {
	_, ok := untrusted(ctx)
	return ok
}

func untrusted(ctx context.Context) (deadline time.Time, ok bool) {
	claimed, ok := ctx.Value(DeadlineKey{}).(time.Time)
	deadline, has := ctx.Deadline()
	return deadline, ok && has && !deadline.Before(claimed)
}
