package spillgrpc

import (
	"context"
	"errors"
	"slices"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/charging"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/clock"
	"github.com/seed90641741/spillway/internal/final"
)

// A servedCall is the context of a call that is served. Outgoing calls inherit its criticality
// and deadline, belong to its task, and set its mark. It is one piece of memory for all of it.
type servedCall struct {
	context.Context //nolint:containedctx // it is one

	task      spillway.Task
	class     spillway.Criticality
	labelled  bool // with the class
	untrusted bool // its deadline, that of Context, is of a client at an edge
	final     final.Mark
	charging  charging.State
	passage   *ingress.Passage // nil: it cannot be charged
	clock     *clock.Clock
}

// passages is a pool of passages for calls that are not streams. The passage of a call that was
// charged is not reused: a late charge may still find it.
var passages = sync.Pool{New: func() any { return new(ingress.Passage) }}

// classes are contexts that hold a class each, by its index. All calls share them.
var classes = func() (all [spillway.Criticalities]context.Context) {
	for i := range all {
		all[i] = spillway.WithCriticality( //nolint:fatcontext // each has its own
			context.Background(), spillway.Criticality(i)+spillway.Sheddable)
	}
	return all
}()

// Value implements [context.Context].
func (s *servedCall) Value(key any) any {
	switch key {
	case final.Key{}:
		return &s.final
	case chargeKey{}:
		return s
	}
	if s.labelled {
		if v := classes[s.class.Index()].Value(key); v != nil {
			return v
		}
	}
	if v := s.task.Value(key); v != nil {
		return v
	}
	if s.untrusted && key == (claims.DeadlineKey{}) {
		if d, ok := s.Deadline(); ok {
			return d
		}
	}
	return s.Context.Value(key)
}

// inherit returns the context by which outgoing calls inherit criticality and deadline, which at
// an edge is marked as untrusted, and what ends it, nil if nothing has to.
func (s *Server) inherit(ctx context.Context, a *arrival, p *ingress.Passage) (context.Context, *servedCall, context.CancelFunc) {
	x := &servedCall{Context: s.signal(ctx, a), class: a.call.Criticality, labelled: a.labelled, clock: &s.clock}
	x.task.Begin(a.call.Level, a.call.Progress)
	x.final.Repeated = a.call.Attempt > 0
	if p.Chargeable() {
		x.passage = p
	}
	if !a.earlier {
		x.untrusted = a.edge
		return x, x, nil
	}
	limited, cancel := context.WithDeadline(x, a.call.Deadline)
	return limited, x, cancel
}

// release gives back the passage of a call that has ended, unless the call was charged.
func (s *servedCall) release(p *ingress.Passage) {
	if s.passage == nil || s.charging.End() {
		passages.Put(p)
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
	isFinal := (s.final.IsSet() || final.Error(err)) && repeatable(st.Code())
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

// repeatable reports whether clients would retry a call with such an answer. The other codes
// are final answers.
func repeatable(c codes.Code) bool {
	switch c {
	case codes.Unknown, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Internal, codes.Unavailable, codes.DataLoss:
		return true
	default:
		return false
	}
}

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
