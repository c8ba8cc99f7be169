package spillconnect

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"connectrpc.com/connect"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/clock"
	"github.com/seed90641741/spillway/internal/serving"
)

// ServerConfig configures a [Server]. The zero ServerConfig is ready for use: it sheds by
// criticality when the process is overloaded, and trusts no client.
type ServerConfig struct {
	// Ingress decides. All servers of a process should share one. Nil means one with the
	// zero [ingress.Config], which [Server.Close] closes.
	Ingress *ingress.Server
	// Classify returns what the server itself knows of a call: its class, the customer once
	// it is authenticated, a deadline. It must be quick and safe for concurrent use. A Key
	// that it leaves empty becomes the procedure. Nil means that nothing is known.
	Classify func(ctx context.Context, spec connect.Spec, header http.Header) spillway.Call
	// Identity returns the proven identity of the caller, or the empty string; never what a
	// header says. connect-go does not show the certificate of the client to interceptors:
	// middleware that has verified it can put it into the context. Nil means unknown.
	Identity func(ctx context.Context) string
	// HealthProcedures are procedures, such as "/grpc.health.v1.Health/Check", whose calls
	// are neither counted nor rejected. Every client can call them at any rate, so they must
	// be cheap. Where Check of the health service is one, Watch is, too.
	HealthProcedures []string
}

// A Server is a [connect.Interceptor] that protects handlers from more calls than they can
// serve. It is safe for concurrent use; make one with [NewServer]. In a client it does
// nothing.
type Server struct {
	ingress  *ingress.Server
	owned    serving.Owned
	classify func(context.Context, connect.Spec, http.Header) spillway.Call
	identity func(context.Context) string
	health   []string
	clock    clock.Clock
}

var _ connect.Interceptor = (*Server)(nil)

// NewServer returns a Server, or an error that says what is wrong.
func NewServer(c ServerConfig) (*Server, error) {
	s := &Server{classify: c.Classify, identity: c.Identity, health: claims.Health(c.HealthProcedures)}
	var err error
	s.ingress, s.owned, err = serving.Own("spillconnect", c.Ingress)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Close frees what [NewServer] has made. Call it when the last call has ended. It does not
// close ServerConfig.Ingress.
func (s *Server) Close() error { return s.owned.Close() }

// WrapStreamingClient implements [connect.Interceptor]. It returns next.
func (s *Server) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapUnary implements [connect.Interceptor]. A panic of the handler passes through.
func (s *Server) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (answer connect.AnyResponse, err error) {
		if req.Spec().IsClient || slices.Contains(s.health, req.Spec().Procedure) {
			return next(ctx, req)
		}
		err = s.serve(ctx, req.Spec(), req.Peer(), req.Header(), new(ingress.Slot), func(ctx context.Context) error {
			answer, err = next(ctx, req)
			return err
		})
		if err != nil {
			return nil, err
		}
		return answer, nil
	}
}

// WrapStreamingHandler implements [connect.Interceptor]. A stream counts once, while its
// handler runs and does not wait for the client.
func (s *Server) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if slices.Contains(s.health, conn.Spec().Procedure) {
			return next(ctx, conn)
		}
		stream := &serverStream{StreamingHandlerConn: conn, stream: serving.Stream{Clock: &s.clock}}
		defer stream.stream.End()
		return s.serve(ctx, conn.Spec(), conn.Peer(), conn.RequestHeader(), &stream.stream.Slot, func(ctx context.Context) error {
			return next(ctx, stream)
		})
	}
}

// serve runs handle with the context of an admitted call, or returns a rejection.
func (s *Server) serve(
	ctx context.Context, spec connect.Spec, peer connect.Peer, h http.Header, slot *ingress.Slot, handle func(context.Context) error,
) error {
	now := s.clock.Now()
	var a serving.Arrival
	s.judge(ctx, now, spec, peer, h, &a)
	if rejection := slot.EnterAt(ctx, s.ingress, now, &a.Call, &a.Caller); rejection.Rejected() {
		return reject(ctx, rejection, s.ingress.Trust().Discloses())
	}
	if f, changed := a.Restate(); changed {
		importance.Put(h, &f)
	}
	served := servedAs(ctx, &a, s.ingress.Degradation(a.Call.Criticality))
	outcome := spillway.OutcomeFailed // unless handle returns
	var meter ingress.Meter
	if spec.StreamType == connect.StreamTypeUnary {
		meter = slot.Measure()
	}
	defer func() {
		meter.End()
		slot.Done(outcome)
		served.Stop()
	}()
	err := handle(served)
	outcome = serving.OutcomeOf(served, codeOf(err))
	return served.answer(err)
}

// judge fills in a from a call, with the claims of its headers that are trusted.
func (s *Server) judge(ctx context.Context, now time.Time, spec connect.Spec, peer connect.Peer, h http.Header, a *serving.Arrival) {
	if s.classify != nil {
		a.Call = s.classify(ctx, spec, h)
	}
	if a.Call.Key == "" {
		a.Call.Key = spec.Procedure
	}
	var said ingress.Claims
	a.Said = importance.Of(h)
	a.Read(&said, h[headerTrace])
	if a.CountsAttempts(s.ingress.Trust()) {
		said.Attempt = claims.Attempt(h[headerAttempts])
	}
	if s.identity != nil {
		said.Identity = s.identity(ctx)
	}
	if d, ok := ctx.Deadline(); ok {
		said.Timeout = max(d.Sub(now), 1) // without time left it is not unlimited
	}
	a.Believe(now, s.ingress.Trust(), &said)
	a.Caller.Application = h.Get("User-Agent")
	if p, err := netip.ParseAddrPort(peer.Addr); err == nil {
		a.Caller.Addr = p.Addr().Unmap()
	}
}

// serverStream is a stream whose handler does no work while it waits for the client.
type serverStream struct {
	connect.StreamingHandlerConn

	stream serving.Stream
}

// Receive implements [connect.StreamingHandlerConn].
func (s *serverStream) Receive(m any) error {
	return s.stream.Receive(m, s.StreamingHandlerConn.Receive)
}

// Send implements [connect.StreamingHandlerConn].
func (s *serverStream) Send(m any) error { return s.stream.Send(m, s.StreamingHandlerConn.Send) }

// Close ends the stream with an error, as a connection of connect-go does. It does nothing where the connection has no such method.
func (s *serverStream) Close(err error) error {
	if c, ok := s.StreamingHandlerConn.(interface{ Close(err error) error }); ok {
		return c.Close(err)
	}
	return nil
}

// codeOf returns the code of an error, which is 0 for none.
func codeOf(err error) connect.Code {
	if err == nil {
		return 0
	}
	return connect.CodeOf(err)
}
