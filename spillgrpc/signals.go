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
// is that of the server now, and its metadata say of class and level what was
// believed: handlers that pass on all metadata, or all baggage, must not pass on more.
func (s *Server) signal(ctx context.Context, a *arrival) context.Context {
	if level := s.ingress.Degradation(a.call.Criticality); level > 0 {
		ctx = spillway.WithDegradation(ctx, level)
	}
	return restate(ctx, a)
}

// restate returns ctx with metadata that say what was believed of the class and the level of a call.
func restate(ctx context.Context, a *arrival) context.Context {
	f := a.said
	if !f.Restate(a.call.Criticality, a.labelled, a.believed) {
		return ctx
	}
	md, _ := metadata.FromIncomingContext(ctx) // a copy
	claims.Put(md, keyCriticality, f.Criticality)
	claims.Put(md, keyLevel, f.Level)
	claims.Put(md, keyProgress, f.Progress)
	claims.Put(md, keyBaggage, f.Baggage)
	return metadata.NewIncomingContext(ctx, md)
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
