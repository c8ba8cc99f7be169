package spillconnect

import (
	"context"
	"errors"
	"maps"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/internal/serving"
)

// A served is the context of a call that is served. Outgoing calls inherit its criticality and deadline, belong to its task, and set its
// mark.
type served struct {
	serving.Context

	mark final.Mark
}

// Value implements [context.Context].
func (s *served) Value(key any) any {
	if key == (final.Key{}) {
		return &s.mark
	}
	return s.Context.Value(key)
}

// servedAs returns the context of a call that is served, with the level of degradation.
func servedAs(ctx context.Context, a *serving.Arrival, level spillway.DegradationLevel) *served {
	s := new(served)
	s.BeginUnder(ctx, a, level)
	s.mark.Repeated = a.Call.Attempt > 0
	return s
}

// answer returns the error of a handler as its client gets it. If an outgoing call must not
// be repeated, neither must this one. Statements of another server about its load are removed.
func (s *served) answer(err error) error {
	if err == nil {
		return nil
	}
	isFinal := (s.mark.IsSet() || final.Error(err)) && serving.Repeatable(connect.CodeOf(err))
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
