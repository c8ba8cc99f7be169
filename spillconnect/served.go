package spillconnect

import (
	"context"
	"errors"
	"maps"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/final"
)

// An inheritance is what the outgoing calls of a handler inherit from its call, and what
// they report back. It is the context that has both.
type inheritance struct {
	context.Context //nolint:containedctx // it is one

	labelled bool           // they inherit the class
	edge     bool           // the deadline is one that an untrusted client has set
	believed spillway.Level // that the call claimed; 0: none
	task     spillway.Task
	mark     final.Mark
}

// Value implements [context.Context].
func (i *inheritance) Value(key any) any {
	if key == (final.Key{}) {
		return &i.mark
	}
	if v := i.task.Value(key); v != nil {
		return v
	}
	return i.Context.Value(key)
}

// begin returns the context of a call that is served, and what ends it.
func (i *inheritance) begin(ctx context.Context, call spillway.Call) (context.Context, context.CancelFunc) {
	i.mark.Repeated = call.Attempt > 0
	i.task.Begin(call.Level, call.Progress)
	i.Context, ctx = ctx, i
	if i.labelled {
		ctx = spillway.WithCriticality(ctx, call.Criticality)
	}
	d, ok := ctx.Deadline()
	if ok && i.edge {
		ctx = context.WithValue(ctx, claims.DeadlineKey{}, d)
	}
	if call.Deadline.IsZero() || ok && !call.Deadline.Before(d) {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, call.Deadline)
}

// answer returns the error of a handler as its client gets it. If an outgoing call must not
// be repeated, neither must this one. Statements of another server about its load are removed.
func (i *inheritance) answer(err error) error {
	if err == nil {
		return nil
	}
	isFinal := (i.mark.IsSet() || final.Error(err)) && repeatable(connect.CodeOf(err))
	passedOn := connect.IsWireError(err)
	if !isFinal && !passedOn {
		return err
	}
	own := withoutOthers(err)
	if isFinal {
		dontRetry(own, &errdetails.ErrorInfo{Domain: errorDomain, Reason: reasonDontRetry})
	}
	return own
}

// repeatable reports whether clients repeat calls with such an error.
func repeatable(c connect.Code) bool {
	switch c {
	case connect.CodeUnknown, connect.CodeDeadlineExceeded, connect.CodeResourceExhausted, connect.CodeAborted,
		connect.CodeInternal, connect.CodeUnavailable, connect.CodeDataLoss:
		return true
	default:
		return false
	}
}

// withoutOthers returns err with the code, the message and the details that it has, but
// without metadata and details by which another server speaks of itself.
func withoutOthers(err error) *connect.Error {
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return connect.NewError(connect.CodeOf(err), err)
	}
	own := connect.NewError(e.Code(), errors.New(e.Message()))
	for _, d := range e.Details() {
		if !ofAnother(d) {
			own.AddDetail(d)
		}
	}
	if !connect.IsWireError(err) {
		maps.Copy(own.Meta(), e.Meta())
	}
	return own
}

func ofAnother(d *connect.ErrorDetail) bool {
	switch v, _ := d.Value(); v := v.(type) {
	case *errdetails.RetryInfo:
		return true
	case *errdetails.ErrorInfo:
		return v.GetDomain() == errorDomain
	default:
		return false
	}
}
