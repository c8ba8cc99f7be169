package spillmongo

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

// A verdict is what one attempt means.
type verdict struct {
	err   error    // nil after success
	reply bson.Raw // of the server

	overloaded, safe bool // the labels SystemOverloadedError and RetryableError
	again            bool // may be retried as retryable reads and writes are
	nothingWritten   bool // the label NoWritesPerformed
	coded            bool // the server gave a reason
	done             bool // the command was done, but for its write concern
	canceled         bool
	unsent           bool          // this process could not make a connection
	unanswered       bool          // the connection broke, or nothing came in time
	base             time.Duration // baseBackoffMS
}

// served reports whether the server did the command, be it with reservations that
// no retry would lift.
func (v *verdict) served() bool {
	return v.err == nil || v.done && !v.again && !v.overloaded
}

func (v *verdict) failure(r *Retrier) fault.Failure {
	f := fault.Failure{Overload: v.overloaded, Safety: fault.RetryUnsafe, Canceled: v.canceled, Unsent: v.unsent, Unanswered: v.unanswered}
	if v.again || v.overloaded && v.safe {
		f.Safety = fault.RetrySafe
	}
	if r.hints && v.base > 0 {
		f.RetryAfter, f.HasRetryAfter = v.base, true
	}
	return f
}

// A call is a command, or the search for a connection that comes before it, under
// the retry policy. It goes from the one to the other.
type call struct {
	retrier  *Retrier
	strategy retry.Strategy // nil when the call has ended
	token    retry.Token
	from     string // server of the last attempt
	overload bool   // the last attempt met one
	avoid    []string
}

// begin begins a call.
func (r *Retrier) begin(s retry.Strategy, kind spillway.Kind, deadline time.Time) *call {
	return &call{retrier: r, strategy: s, token: s.Begin(spillway.Call{Kind: kind, Deadline: deadline})}
}

// begun reports whether the call has begun, and not ended.
func (k *call) begun() bool { return k != nil && k.strategy != nil }

// opening returns the call that begins when no connection can be had. The command is
// not written yet, but ctx has the deadline of the operation, and the call stack shows
// the kind of most commands.
func (r *Retrier) opening(ctx context.Context) *call {
	kind, ends := callersKind()
	deadline, _ := ctx.Deadline()
	if ends {
		return r.begin(r.ends, kind, deadline)
	}
	return r.begin(r.strategy, kind, deadline)
}

// use says which server an attempt is made at.
func (k *call) use(address string) {
	k.token.Attempt().Use(address)
	if k.from != "" && k.from != address && k.overload {
		k.retrier.count.retargeted.Add(1)
	}
	k.from = address
}

// refresh reports whether an attempt that failed with f may be followed by
// another. If not, the call has ended.
func (k *call) refresh(now time.Time, f fault.Failure) bool {
	k.overload = f.Overload
	if f.Overload {
		k.retrier.count.overloads.Add(1)
	}
	next, why := k.strategy.Refresh(now, k.token, f)
	if why != nil {
		k.retrier.count.reject(why)
		*k = call{}
		return false
	}
	k.token = next
	k.deprioritize(f.Overload)
	return true
}

// deprioritize has the next attempts avoid the server of the last one: after an
// overload, and in a sharded cluster after any error. Elsewhere the document on
// retryable reads forbids it after other errors, which are no reason to read from
// another member of a set.
func (k *call) deprioritize(overload bool) {
	if overload && !k.retrier.retarget || !overload && !k.retrier.sharded() {
		return
	}
	if k.from != "" && !slices.Contains(k.avoid, k.from) {
		k.avoid = append(k.avoid, k.from)
	}
}

// wait waits before the next attempt, and reports whether it can be made in time.
// If not, the call has ended.
func (k *call) wait(ctx context.Context, now time.Time) bool {
	d := k.token.Delay()
	if err := sleep(ctx, now, d); err != nil {
		k.giveBack()
		return false
	}
	if k.overload {
		k.retrier.count.backoff.Add(int64(d))
	}
	return true
}

// sent counts a retry that was made: a connection was asked for, or the command was
// written.
func (k *call) sent() { k.retrier.count.retry(k.overload) }

// again does both.
func (k *call) again(ctx context.Context, f fault.Failure) bool {
	now := time.Now()
	return k.refresh(now, f) && k.wait(ctx, now)
}

// giveBack ends the call before an attempt that was granted was sent.
func (k *call) giveBack() {
	if k.strategy != nil {
		_ = k.strategy.Release(k.token, fault.Failure{Unsent: true}) // it is ours, and was not used
		*k = call{}
	}
}

// succeed ends the call.
func (k *call) succeed() {
	if k.token.Attempt().Number > 0 {
		k.retrier.count.recovered.Add(1)
	}
	_ = k.strategy.Succeed(k.token) // the command has succeeded, whatever it makes of it
	*k = call{}
}

// sleep waits for d, counted from now, or returns why not.
func sleep(ctx context.Context, now time.Time, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && !now.Add(d).Before(deadline) {
		return context.DeadlineExceeded
	}
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
