package spillgrpc

import (
	"context"

	"google.golang.org/grpc/metadata"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
)

// keyAcceptRatio is in the trailer of an answer: the share of the calls of the
// criticality that the server has accepted recently, from 0 to 1. It is absent where
// that is nearly 1, and at an edge.
const keyAcceptRatio = "x-request-accept-ratio"

// signal returns the context with which a call is served. Its level of degradation
// is that of the server now, and a member criticality of the baggage says what was
// believed: handlers that pass on all baggage must not pass on more.
func (s *Server) signal(ctx context.Context, a *arrival) context.Context {
	if level := s.ingress.Degradation(a.call.Criticality); level > 0 {
		ctx = spillway.WithDegradation(ctx, level)
	}
	return restate(ctx, a)
}

// restate returns ctx with metadata whose baggage says what was believed of a call.
func restate(ctx context.Context, a *arrival) context.Context {
	values := a.baggage
	if len(values) == 0 || !claims.HasBaggage(values) {
		return ctx
	}
	believed := claims.RemoveBaggage(values)
	if a.labelled {
		believed = claims.SetBaggage(values, a.call.Criticality)
	}
	if same(believed, values) {
		return ctx
	}
	md, _ := metadata.FromIncomingContext(ctx) // a copy
	setBaggage(md, believed)
	return metadata.NewIncomingContext(ctx, md)
}

// same reports whether a is b, as package claims returns what it has not changed.
func same(a, b []string) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func setBaggage(md metadata.MD, values []string) {
	if len(values) == 0 {
		delete(md, keyBaggage)
	} else {
		md[keyBaggage] = values
	}
}

// outgoingBaggage returns what the baggage of an attempt is to be, and whether it is
// another than that of ctx.
func outgoingBaggage(ctx context.Context, c spillway.Criticality, labelled, external bool) (values []string, changes bool) {
	if !external && (!labelled || !c.Valid()) {
		return nil, false
	}
	have := metadata.ValueFromOutgoingContext(ctx, keyBaggage)
	if external {
		values = claims.RemoveBaggage(have)
	} else {
		values = claims.SetBaggage(have, c)
	}
	return values, !same(values, have)
}

// ratio returns a trailer with the accept ratio, nil if that is nearly 1.
func ratio(s *ingress.Server, c spillway.Criticality) metadata.MD {
	if text := s.AcceptRatio(c); text != "" {
		return metadata.Pairs(keyAcceptRatio, text)
	}
	return nil
}

// listenToAdvice passes on to the throttle which share of its calls the server says
// that it accepts, if the server is internal.
func listenToAdvice(a *egress.Attempt, trailer metadata.MD, external bool) {
	if values := trailer[keyAcceptRatio]; len(values) > 0 && !external {
		if r, ok := claims.Ratio(values); ok {
			a.Advise(r)
		}
	}
}
