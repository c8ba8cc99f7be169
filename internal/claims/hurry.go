package claims

import (
	"context"
	"time"
)

// DeadlineKey is the key in a context of the deadline, a [time.Time], that a caller has
// set who is not trusted.
type DeadlineKey struct{}

// Hurried reports whether a call that began under ctx has by now run into a deadline that a
// caller has set who is not trusted. That says nothing of whoever was called on behalf of
// that caller: else a stranger who leaves no time could have the calls of all others
// refused. A timeout of one's own that comes long before does.
func Hurried(ctx context.Context, began, now time.Time) bool {
	claimed, ok := ctx.Value(DeadlineKey{}).(time.Time)
	d, has := ctx.Deadline()
	if !ok || !has || d.Before(claimed) {
		return false
	}
	// Who is called is told a little less, and may have given up by itself.
	return d.Sub(now) <= d.Sub(began)/10+time.Millisecond
}
