package spillconnect

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/idle"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/ratelimit"
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
	owned    bool
	classify func(context.Context, connect.Spec, http.Header) spillway.Call
	identity func(context.Context) string
	health   []string
}

var _ connect.Interceptor = (*Server)(nil)

// NewServer returns a Server, or an error that says what is wrong.
func NewServer(c ServerConfig) (*Server, error) {
	s := &Server{ingress: c.Ingress, classify: c.Classify, identity: c.Identity, health: claims.Health(c.HealthProcedures)}
	if s.ingress == nil {
		var err error
		if s.ingress, err = ingress.New(ingress.Config{}); err != nil {
			return nil, invalid.In("spillconnect", "Ingress", err)
		}
		s.owned = true
	}
	return s, nil
}

// Close frees what [NewServer] has made. Call it when the last call has ended. It does not
// close ServerConfig.Ingress.
func (s *Server) Close() error {
	if !s.owned {
		return nil
	}
	return s.ingress.Close()
}

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
		err = s.serve(ctx, req.Spec(), req.Peer(), req.Header(), new(ingress.Passage), func(ctx context.Context) error {
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
		stream := &serverStream{StreamingHandlerConn: conn}
		defer stream.idle.End()
		return s.serve(ctx, conn.Spec(), conn.Peer(), conn.RequestHeader(), &stream.passage, func(ctx context.Context) error {
			return next(ctx, stream)
		})
	}
}

// serve runs handle with the context of an admitted call, or returns a rejection.
func (s *Server) serve(
	ctx context.Context, spec connect.Spec, peer connect.Peer, h http.Header, passage *ingress.Passage, handle func(context.Context) error,
) error {
	now := time.Now()
	call, caller, inherits := s.judge(ctx, now, spec, peer, h)
	if refusal := passage.EnterAt(ctx, s.ingress, now, &call, &caller); refusal.Rejected() {
		return reject(ctx, refusal, s.ingress.Trust().Discloses())
	}
	restate(h, call.Criticality, inherits)
	served, cancel := inherits.begin(ctx, call)
	outcome := spillway.OutcomeFailed // unless handle returns
	var meter ingress.Meter
	if spec.StreamType == connect.StreamTypeUnary {
		meter = passage.Measure()
	}
	defer func() {
		meter.End()
		passage.Done(outcome)
		cancel()
	}()
	err := handle(served)
	outcome = outcomeOf(served, err)
	return inherits.answer(err)
}

// judge returns what a call is, with the claims of its headers that are trusted.
func (s *Server) judge(
	ctx context.Context, now time.Time, spec connect.Spec, peer connect.Peer, h http.Header,
) (spillway.Call, ratelimit.Caller, *inheritance) {
	var call spillway.Call
	if s.classify != nil {
		call = s.classify(ctx, spec, h)
	}
	if call.Key == "" {
		call.Key = spec.Procedure
	}
	var said ingress.Claims
	fields := fieldsOf(h)
	matters := fields.Read()
	said.Criticality, said.Labelled, said.Level, said.Progress = matters.Criticality, matters.Labelled, matters.Level, matters.Progress
	if said.Level == 0 {
		said.TraceLevel = claims.TraceLevel(h[headerTrace])
	}
	said.Attempt = attemptOf(h[headerAttempts])
	if s.identity != nil {
		said.Identity = s.identity(ctx)
	}
	if d, ok := ctx.Deadline(); ok {
		said.Timeout = max(d.Sub(now), 1) // without time left it is not unlimited
	}
	trust := s.ingress.Trust()
	trust.Apply(now, &call, &said)
	inside := trust.Boundary == ingress.Internal
	caller := ratelimit.Caller{Identity: said.Identity, Application: h.Get("User-Agent")}
	if a, err := netip.ParseAddrPort(peer.Addr); err == nil {
		caller.Addr = a.Addr().Unmap()
	}
	i := &inheritance{labelled: call.Criticality != spillway.Critical || said.Labelled && inside, edge: !inside}
	if inside {
		i.believed = said.Level
	}
	return call, caller, i
}

// serverStream is a stream whose handler does no work while it waits for the client.
type serverStream struct {
	connect.StreamingHandlerConn

	passage ingress.Passage
	answers atomic.Bool // a message was sent
	idle    idle.Stream
}

// Receive implements [connect.StreamingHandlerConn].
func (s *serverStream) Receive(m any) error {
	s.passage.Suspend(time.Now())
	defer func() {
		s.idle.Wake()
		s.passage.Resume(time.Now())
	}()
	return s.StreamingHandlerConn.Receive(m)
}

// Send implements [connect.StreamingHandlerConn].
func (s *serverStream) Send(m any) error {
	s.idle.Wake()
	if !s.answers.Swap(true) {
		s.passage.Answer(time.Now())
	}
	s.passage.Suspend(time.Now())
	defer func() {
		s.passage.Resume(time.Now())
		s.idle.Rest(&s.passage)
	}()
	return s.StreamingHandlerConn.Send(m)
}

// Close ends the stream with an error, as a connection of connect-go does. It does nothing where the connection has no such method.
func (s *serverStream) Close(err error) error {
	if c, ok := s.StreamingHandlerConn.(interface{ Close(err error) error }); ok {
		return c.Close(err)
	}
	return nil
}

// outcomeOf returns the outcome of a call that a handler has answered with err.
func outcomeOf(ctx context.Context, err error) spillway.Outcome {
	if ctx.Err() != nil {
		if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
			return spillway.OutcomeTimedOut
		}
		return spillway.OutcomeAbandoned
	}
	if err == nil {
		return spillway.OutcomeServed
	}
	switch connect.CodeOf(err) {
	case connect.CodeUnknown, connect.CodeInternal, connect.CodeUnavailable, connect.CodeDataLoss, connect.CodeDeadlineExceeded:
		return spillway.OutcomeFailed
	default:
		return spillway.OutcomeServed
	}
}
