package spillgrpc

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spilltest"
)

// burningCodec is a codec of the user.
type burningCodec struct {
	encoding.CodecV2

	f *spilltest.Fuse
}

func (c burningCodec) Marshal(v any) (mem.BufferSlice, error) {
	c.f.Burn("Marshal")
	return c.CodecV2.Marshal(v)
}

func (c burningCodec) Unmarshal(data mem.BufferSlice, v any) error {
	c.f.Burn("Unmarshal")
	return c.CodecV2.Unmarshal(data, v)
}

// worker is a service that does the work of a fuse. Its streams echo.
func worker(f *spilltest.Fuse) *service {
	work := func(ctx context.Context) error {
		err := f.Work(ctx)
		if errors.Is(err, spilltest.ErrBusy) {
			return says(codes.Unavailable, keyPushback, "1")(ctx)
		}
		return err
	}
	return &service{unary: work, duplex: func(ss pb.TestService_FullDuplexCallServer) error {
		if err := work(ss.Context()); err != nil {
			return err
		}
		for {
			if _, err := ss.Recv(); err != nil {
				return nil //nolint:nilerr // the client has sent all
			}
			f.Burn("handler has received")
			if err := ss.Send(&pb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
			f.Burn("handler has sent")
		}
	}}
}

// recovering is what programs have in front of their interceptors.
func recovering(f *spilltest.Fuse) []grpc.ServerOption {
	guard := func(call func() error) error { return f.Try(call) }
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
			return resp, guard(func() error { resp, err = next(ctx, req); return err })
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return guard(func() error { return next(srv, ss) })
		}),
	}
}

// duplex sends and receives two messages, and closes. It leaves no stream behind if anything panics.
func duplex(ctx context.Context, cc grpc.ClientConnInterface) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := pb.NewTestServiceClient(cc).FullDuplexCall(ctx)
	for range 2 {
		if err == nil {
			err = s.Send(&pb.StreamingOutputCallRequest{})
		}
		if err == nil {
			_, err = s.Recv()
		}
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err == nil {
		_, err = s.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// clientRig is a Client with the interceptors and the codec of a user.
type clientRig struct {
	*Client
	cc *grpc.ClientConn
}

func (r clientRig) Held() int    { return inFlight(r.Client) }
func (r clientRig) Close() error { return r.cc.Close() }

func panicsOfClient(t *testing.T) {
	points := spilltest.Calls(func(ctx context.Context, r clientRig) error { return call(ctx, r.cc) }, func(err error) bool {
		return errors.Is(err, spillway.ErrRejected)
	})
	t.Run("unary", func(t *testing.T) { testPanicsOfClient(t, points) })
	points = spilltest.Calls(func(ctx context.Context, r clientRig) error { return duplex(ctx, r.cc) }, nil)
	points.Hedge.Do, points.Hedge.Not = nil, "streams are not hedged"
	t.Run("stream", func(t *testing.T) { testPanicsOfClient(t, points) })
}

func testPanicsOfClient(t *testing.T, points spilltest.Points[clientRig]) {
	t.Helper()
	points.Waiting.Do, points.Waiting.Not = nil, "a client has no queue"
	points.Stream.Do = func(ctx context.Context, _ *spilltest.Fuse, r clientRig) error { return duplex(ctx, r.cc) }
	points.Unseen = map[string]string{"race[...]).fire": "it fires after the call has its answer"}
	spilltest.TestPanics(t, func(t *testing.T, f *spilltest.Fuse) clientRig {
		var c egress.Config
		if f.Point == "Hedge" {
			c.Hedge = retry.HedgeConfig{Delay: 50 * time.Millisecond}
		}
		r := clientRig{Client: mustClient(t, ClientConfig{Egress: f.Egress(c), Classify: func(context.Context, string) spillway.Call {
			f.Burn("Classify")
			return spillway.Call{Idempotent: true, Kind: spillway.KindRead}
		}})}
		r.cc = open(t, worker(f), recovering(f)...).dial(append(r.DialOptions(),
			grpc.WithChainUnaryInterceptor(func(ctx context.Context, m string, req, resp any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				f.Burn("Interceptor")
				return next(ctx, m, req, resp, cc, opts...)
			}),
			grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				f.Burn("Interceptor")
				return next(ctx, d, cc, m, opts...)
			}),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(burningCodec{encoding.GetCodecV2("proto"), f}), grpc.OnFinish(func(error) { f.Burn("OnFinish") })))...)
		for range 20 { // which pay for a hedge
			_ = call(t.Context(), r.cc)
		}
		return r
	}, points)
}

// serverRig is a Server behind interceptors that recover.
type serverRig struct {
	*Server
	cc *grpc.ClientConn
}

func (r serverRig) Held() int {
	s := r.ingress.Stats(time.Now())
	return s.Shed.InFlight + s.Shed.Waiting + s.InFlight.InFlight + s.InFlight.Waiting
}

func (r serverRig) Close() error { return errors.Join(r.cc.Close(), r.ingress.Close()) }

func panicsOfServer(t *testing.T) {
	rejected := func(err error) bool { return status.Code(err) == codes.Unavailable }
	t.Run("unary", func(t *testing.T) {
		testPanicsOfServer(t, spilltest.Calls(func(ctx context.Context, r serverRig) error { return call(ctx, r.cc) }, rejected))
	})
	t.Run("stream", func(t *testing.T) {
		testPanicsOfServer(t, spilltest.Calls(func(ctx context.Context, r serverRig) error { return duplex(ctx, r.cc) }, rejected))
	})
}

func testPanicsOfServer(t *testing.T, points spilltest.Points[serverRig]) {
	t.Helper()
	points.Retry.Do, points.Retry.Not = nil, "a server sends nothing"
	points.Hedge.Do, points.Hedge.Not = nil, "a server sends nothing"
	points.Stream.Do = func(ctx context.Context, _ *spilltest.Fuse, r serverRig) error { return duplex(ctx, r.cc) }
	points.Late = map[string]string{"(*Server).dispatch": "waiters are let in by a goroutine of the ingress.Server, which tries again"}
	spilltest.TestPanics(t, func(t *testing.T, f *spilltest.Fuse) serverRig {
		gates := must(ingress.New(f.Ingress(ingress.Config{})))
		r := serverRig{Server: must(NewServer(ServerConfig{
			Ingress:  gates,
			Classify: func(context.Context, string) spillway.Call { f.Burn("Classify"); return spillway.Call{} },
			Identity: func(context.Context) string { f.Burn("Identity"); return "name" },
			Exempt:   func(string) bool { f.Burn("Exempt of methods"); return false },
		}))}
		r.looks.Store(lookOn)
		r.cc = open(t, worker(f), append(recovering(f), r.Options()...)...).dial()
		return r
	}, points)
}
