package spillgrpc

import (
	"context"
	"errors"
	"slices"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/charging"
	"github.com/seed90641741/spillway/internal/clock"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/internal/serving"
)

// A servedCall is the context of a call that is served. Outgoing calls inherit its criticality
// and deadline, belong to its task, and set its mark. It is one piece of memory for all of it.
type servedCall struct {
	serving.Context

	final    final.Mark
	charging charging.State
	slot     *ingress.Slot // nil: it cannot be charged
	clock    *clock.Clock
}

// slots is a pool of slots for calls that are not streams. The slot of a call that was
// charged is not reused: a late charge may still find it.
var slots = sync.Pool{New: func() any { return new(ingress.Slot) }}

// Value implements [context.Context].
func (s *servedCall) Value(key any) any {
	switch key {
	case final.Key{}:
		return &s.final
	case chargeKey{}:
		return s
	}
	return s.Context.Value(key)
}

// servedAs returns the context of a call that is served.
func (s *Server) servedAs(ctx context.Context, a *arrival, p *ingress.Slot) *servedCall {
	x := &servedCall{clock: &s.clock}
	x.BeginUnder(restate(ctx, a), a, s.ingress.Degradation(a.Call.Criticality))
	x.final.Repeated = a.Call.Attempt > 0
	if p.Chargeable() {
		x.slot = p
	}
	return x
}

// release gives back the slot of a call that has ended, unless the call was charged.
func (s *servedCall) release(p *ingress.Slot) {
	if s.slot == nil || s.charging.End() {
		slots.Put(p)
	}
}

// answer returns the error that a handler has returned as its caller gets it, with a
// trailer or nil. If a call for it must not be repeated, neither must this one: if each
// layer retried the failures of the one below, they would multiply. What the backend of
// the handler said of itself, when to come back and how far its overload reaches, is not
// true of this server and is left out.
func (s *servedCall) answer(err error) (metadata.MD, error) {
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err) // as grpc does
	}
	_, passedOn := errors.AsType[*attemptError](err)
	isFinal := (s.final.IsSet() || final.Error(err)) && serving.Repeatable(st.Code())
	switch {
	case isFinal:
		return dontRetryTrailer, &statusError{err, own(st, dontRetryInfo)}
	case passedOn && len(st.Proto().GetDetails()) > 0:
		return nil, &statusError{err, own(st)}
	default:
		return nil, err
	}
}

// What an answer with an error says if it must not be repeated. It says nothing of the
// load of this server.
var (
	dontRetryInfo    = &errdetails.ErrorInfo{Domain: errorDomain, Reason: reasonDontRetry}
	dontRetryTrailer = metadata.Pairs(keyPushback, "-1")
)

// own returns st without what another server says of itself, and with more.
func own(st *status.Status, more ...protoadapt.MessageV1) *status.Status {
	p := st.Proto() // which is a copy
	p.Details = slices.DeleteFunc(p.GetDetails(), ofAnother)
	next := status.FromProto(p)
	if with, err := next.WithDetails(more...); err == nil && len(more) > 0 {
		return with
	}
	return next
}

func ofAnother(detail *anypb.Any) bool {
	if detail.MessageIs((*errdetails.RetryInfo)(nil)) {
		return true
	}
	var info errdetails.ErrorInfo
	return detail.MessageIs(&info) && detail.UnmarshalTo(&info) == nil && info.GetDomain() == errorDomain
}
