package spillgrpc

import (
	"context"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/clock"
	"github.com/seed90641741/spillway/internal/serving"
)

// ServerConfig configures a [Server]. The zero ServerConfig is ready for use: it
// sheds by criticality when the process is overloaded, and trusts no client.
type ServerConfig struct {
	// Ingress decides. All servers of a process should share one: its Trust, modes and
	// limits can be changed at any time with its Update. Nil means one with the zero
	// [ingress.Config], which [Server.Close] closes.
	Ingress *ingress.Server
	// Classify returns what the server itself knows about a call to a method, given by its
	// full name: its class, the customer once they are authenticated, a deadline of the
	// server. The metadata and the peer are in the context. It must be quick and safe for
	// concurrent use, and may be called twice. If it leaves Key empty, Key becomes the name of
	// the method. Nil means that nothing is known.
	Classify func(ctx context.Context, method string) spillway.Call
	// Identity returns who the caller has proven to be, or nothing; never what it
	// just says. It is called as Classify is. Nil means [CertifiedPeer].
	Identity func(ctx context.Context) string
	// HealthMethods are full names of methods, such as "/grpc.health.v1.Health/Check". Calls
	// to them bypass the Server: a busy server must not look dead. Any client can call them
	// without limit, so they must be cheap to serve. Where Check of the health service is one, Watch is, too.
	HealthMethods []string
	// Exempt reports whether calls to a method pass unseen, in addition to HealthMethods. It
	// is called as Classify is. Nil means [DefaultExempt] at an internal boundary, and
	// that nothing else passes at an edge.
	Exempt func(method string) bool
}

// DefaultExempt reports whether a method is a health check or a load report (ORCA).
// Reflection and channelz are not exempt: they cost more than most calls.
func DefaultExempt(method string) bool {
	switch method {
	case "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics":
		return true
	default:
		return false
	}
}

// A Server protects the services of a [grpc.Server] from more calls than they can
// serve. It is safe for concurrent use; make one with [NewServer].
type Server struct {
	ingress  *ingress.Server
	owned    serving.Owned
	classify func(context.Context, string) spillway.Call
	identity func(context.Context) string
	unseen   func(string) bool // nil: as the boundary has it
	health   []string
	looks    atomic.Int64 // how many calls the tap is to look at
	handed   atomic.Bool  // it has left a rejection for the interceptors before
	panicked atomic.Bool  // it has left a panic for them before
	timers   timers
	clock    clock.Clock
}

// NewServer returns a Server, or an error that says what is wrong.
func NewServer(c ServerConfig) (*Server, error) {
	s := &Server{classify: c.Classify, identity: c.Identity, unseen: c.Exempt, health: claims.Health(c.HealthMethods)}
	var err error
	if s.ingress, s.owned, err = serving.Own("spillgrpc", c.Ingress); err != nil {
		return nil, err
	}
	if s.identity == nil {
		s.identity = CertifiedPeer
	}
	return s, nil
}

// exempt reports whether calls to a method bypass the gates.
func (s *Server) exempt(method string) bool {
	switch {
	case slices.Contains(s.health, method):
		return true
	case s.unseen != nil:
		return s.unseen(method)
	default:
		return DefaultExempt(method) && s.ingress.Trust().Boundary == ingress.Internal
	}
}

// Close closes the ingress.Server that [NewServer] has made. Call it when the last call has
// ended. It does not close ServerConfig.Ingress.
func (s *Server) Close() error { return s.owned.Close() }

// Options returns the options of [grpc.NewServer] that make its calls go through s:
// [Server.Tap], [Server.UnaryInterceptor] and [Server.StreamInterceptor]. Interceptors that
// are passed before these see all calls, interceptors after them see the calls that are
// served. grpc takes one tap only: a program that has a tap passes the two interceptors, and
// calls Tap from its tap.
func (s *Server) Options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InTapHandle(s.Tap),
		grpc.ChainUnaryInterceptor(s.UnaryInterceptor),
		grpc.ChainStreamInterceptor(s.StreamInterceptor),
	}
}

// UnaryInterceptor is a [grpc.UnaryServerInterceptor]. It serves the call, with a context that
// carries the criticality and the deadline that it was admitted with, or rejects it. A panic
// passes through.
func (s *Server) UnaryInterceptor(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
	s.goOn(ctx)
	if s.exempt(info.FullMethod) {
		return handler(ctx, req)
	}
	now := s.clock.Now()
	var a arrival
	s.judge(ctx, now, info.FullMethod, &a)
	slot := slots.Get().(*ingress.Slot)
	if rejection := s.enter(ctx, now, slot, &a); rejection.Rejected() {
		slots.Put(slot)
		to := s.reject(ctx, &rejection)
		_ = grpc.SetTrailer(ctx, to.trailer) // fails only where there is no stream
		return nil, to.status.Err()
	}
	if t := ratio(s.ingress, a.Call.Criticality); t != nil {
		_ = grpc.SetTrailer(ctx, t) // as above
	}
	served := s.servedAs(ctx, &a, slot)
	outcome := spillway.OutcomeFailed // unless the handler returns
	meter := slot.Measure()
	defer func() {
		meter.End()
		slot.Done(outcome)
		served.release(slot)
		served.Stop()
	}()
	answer, err = handler(served, req)
	if outcome = serving.OutcomeOf(served, status.Code(err)); err != nil {
		var trailer metadata.MD
		if trailer, err = served.answer(err); trailer != nil {
			_ = grpc.SetTrailer(ctx, trailer) // fails where nobody reads it
		}
	} else if slot.Waited() {
		_ = grpc.SetTrailer(ctx, busyTrailer) // likewise
	}
	return answer, err
}

// busyTrailer is that of a call that was served after a wait: another task may be less busy.
var busyTrailer = metadata.Pairs(keyScope, fault.ScopeTask.String())

// StreamInterceptor is a [grpc.StreamServerInterceptor]: it does for streams what
// UnaryInterceptor does for other calls. A stream counts once, until its
// handler returns.
func (s *Server) StreamInterceptor(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx := ss.Context()
	s.goOn(ctx)
	if s.exempt(info.FullMethod) {
		return handler(srv, ss)
	}
	now := s.clock.Now()
	var a arrival
	s.judge(ctx, now, info.FullMethod, &a)
	stream := &serverStream{ServerStream: ss, stream: serving.Stream{Clock: &s.clock}}
	if rejection := s.enter(ctx, now, &stream.stream.Slot, &a); rejection.Rejected() {
		to := s.reject(ctx, &rejection)
		ss.SetTrailer(to.trailer)
		return to.status.Err()
	}
	if t := ratio(s.ingress, a.Call.Criticality); t != nil {
		ss.SetTrailer(t)
	}
	served := s.servedAs(ctx, &a, &stream.stream.Slot)
	stream.ctx = served
	outcome := spillway.OutcomeFailed // unless the handler returns
	defer func() {
		stream.stream.End()
		stream.stream.Slot.Done(outcome)
		served.Stop()
	}()
	err := handler(srv, stream)
	if outcome = serving.OutcomeOf(served, status.Code(err)); err != nil {
		var trailer metadata.MD
		if trailer, err = served.answer(err); trailer != nil {
			ss.SetTrailer(trailer)
		}
	}
	return err
}

// serverStream is a stream with another context, whose handler does no work while it waits for the client.
type serverStream struct {
	grpc.ServerStream

	ctx    context.Context //nolint:containedctx // as in the streams of grpc
	stream serving.Stream
}

// RecvMsg implements [grpc.ServerStream].
func (s *serverStream) RecvMsg(m any) error { return s.stream.Receive(m, s.ServerStream.RecvMsg) }

// SendMsg implements [grpc.ServerStream].
func (s *serverStream) SendMsg(m any) error { return s.stream.Send(m, s.ServerStream.SendMsg) }

// SendHeader implements [grpc.ServerStream]. A handler that waits for its first event sends the header before.
func (s *serverStream) SendHeader(md metadata.MD) error {
	s.stream.Begin()
	defer s.stream.Rest()
	return s.ServerStream.SendHeader(md)
}

func (s *serverStream) Context() context.Context { return s.ctx }
