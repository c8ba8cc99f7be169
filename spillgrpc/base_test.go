package spillgrpc

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/shed"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// inBubble runs f in its own bubble, which fails if a goroutine is left.
func inBubble(t *testing.T, f func(*testing.T)) { synctest.Test(t, f) }

// The methods of the service that tests use.
const (
	methodUnary  = "/grpc.testing.TestService/UnaryCall"
	methodEmpty  = "/grpc.testing.TestService/EmptyCall"
	methodOutput = "/grpc.testing.TestService/StreamingOutputCall"
	methodInput  = "/grpc.testing.TestService/StreamingInputCall"
	methodDuplex = "/grpc.testing.TestService/FullDuplexCall"
)

// service is a service made of funcs. A nil func answers at once.
type service struct {
	pb.UnimplementedTestServiceServer

	unary  func(context.Context) error
	output func(*pb.StreamingOutputCallRequest, pb.TestService_StreamingOutputCallServer) error
	input  func(pb.TestService_StreamingInputCallServer) error
	duplex func(pb.TestService_FullDuplexCallServer) error
}

func (s *service) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if s.unary != nil {
		if err := s.unary(ctx); err != nil {
			return nil, err
		}
	}
	return &pb.SimpleResponse{Username: "served"}, nil
}

func (s *service) EmptyCall(ctx context.Context, _ *pb.Empty) (*pb.Empty, error) {
	if s.unary != nil {
		if err := s.unary(ctx); err != nil {
			return nil, err
		}
	}
	return &pb.Empty{}, nil
}

func (s *service) StreamingOutputCall(r *pb.StreamingOutputCallRequest, ss pb.TestService_StreamingOutputCallServer) error {
	if s.output != nil {
		return s.output(r, ss)
	}
	return ss.Send(&pb.StreamingOutputCallResponse{})
}

func (s *service) StreamingInputCall(ss pb.TestService_StreamingInputCallServer) error {
	if s.input != nil {
		return s.input(ss)
	}
	return ss.SendAndClose(&pb.StreamingInputCallResponse{})
}

func (s *service) FullDuplexCall(ss pb.TestService_FullDuplexCallServer) error {
	if s.duplex != nil {
		return s.duplex(ss)
	}
	return nil
}

// site is a server and what leads to it.
type site struct {
	tb       testing.TB
	listener *bufconn.Listener
	server   *grpc.Server
}

// open starts a server that ends with the test.
func open(tb testing.TB, s *service, opts ...grpc.ServerOption) *site {
	tb.Helper()
	x := &site{tb, newListener(), grpc.NewServer(opts...)}
	pb.RegisterTestServiceServer(x.server, s)
	x.start()
	return x
}

func newListener() *bufconn.Listener { return bufconn.Listen(1 << 20) }

// start serves. A test that did not register all services with open calls it.
func (x *site) start() {
	var serving sync.WaitGroup
	serving.Go(func() { _ = x.server.Serve(x.listener) })
	x.tb.Cleanup(func() {
		x.server.Stop()
		serving.Wait()
	})
}

func (x *site) dial(opts ...grpc.DialOption) *grpc.ClientConn {
	return dial(x.tb, "passthrough:///site", append([]grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return x.listener.DialContext(ctx) }),
	}, opts...)...)
}

// dial opens a channel that ends with the test.
func dial(tb testing.TB, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	tb.Helper()
	cc, err := grpc.NewClient(target, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = cc.Close() })
	return cc
}

// eager retries whatever may be retried, twice, at once and for free. The throttle
// is off, as it rejects at random.
var eager = egress.Config{
	Retry:        must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}})),
	ThrottleMode: spillway.ModeOff,
}

// idempotent says of all calls that they are.
func idempotent(context.Context, string) spillway.Call { return spillway.Call{Idempotent: true} }

func classify(is bool) func(context.Context, string) spillway.Call {
	return func(context.Context, string) spillway.Call { return spillway.Call{Idempotent: is} }
}

func mustClient(tb testing.TB, c ClientConfig) *Client {
	tb.Helper()
	client, err := NewClient(c)
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

// mustServer returns a Server, and closes what decides for it.
func mustServer(tb testing.TB, gates ingress.Config, c ServerConfig) *Server {
	tb.Helper()
	c.Ingress = must(ingress.New(gates))
	tb.Cleanup(func() {
		if err := c.Ingress.Close(); err != nil {
			tb.Error(err)
		}
	})
	return must(NewServer(c))
}

// none is a quota that rejects everybody.
func none() quota.Config {
	return quota.Config{Allocator: must(quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 1e-9}})), BurstSeconds: 0.01}
}

var internal = ingress.Config{Trust: ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus}}

// busy is a load at which SHEDDABLE and SHEDDABLE_PLUS are rejected, and swamped one
// at which all are. The room is for what the process that tests happens to do.
var (
	busy    = ingress.Config{Load: utilization(0.94), Shed: patient}
	swamped = ingress.Config{Load: utilization(2), Shed: patient}
	patient = shed.Config{MaxWait: 10 * time.Second}
)

func utilization(level float64) load.Config {
	return load.Config{Signals: []load.Signal{{Name: "test", Read: func() float64 { return level }}}}
}

// inFlight returns how many attempts a Client has in flight in all.
func inFlight(c *Client) (n int) {
	for _, s := range c.Stats(time.Now()) {
		n += s.InFlight.InFlight
	}
	return n
}

// nothingLeft fails for calls that are in flight or wait.
func nothingLeft(t *testing.T, s *Server) {
	t.Helper()
	if s := s.ingress.Stats(time.Now()).Shed; s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("%d in flight, %d wait, want nothing left", s.InFlight, s.Waiting)
	}
}

func call(ctx context.Context, cc grpc.ClientConnInterface, opts ...grpc.CallOption) error {
	_, err := pb.NewTestServiceClient(cc).UnaryCall(ctx, &pb.SimpleRequest{}, opts...)
	return err
}
