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

// restate returns ctx with metadata that say of class and level what was believed: handlers that pass on all metadata, or all baggage, must
// not pass on more.
func restate(ctx context.Context, a *arrival) context.Context {
	f, changed := a.Restate()
	if !changed {
		return ctx
	}
	md, _ := metadata.FromIncomingContext(ctx) // a copy
	importanceKeys.Put(md, &f)
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
