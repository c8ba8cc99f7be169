package spillxds_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/internal/freeport"
	"github.com/seed90641741/spillway/spillxds"
)

// backend is a server of gRPC's test service.
type backend struct {
	testgrpc.UnimplementedTestServiceServer

	unary func(context.Context) error
}

func (b *backend) UnaryCall(ctx context.Context, _ *testgrpc.SimpleRequest) (*testgrpc.SimpleResponse, error) {
	return new(testgrpc.SimpleResponse), b.unary(ctx)
}

func (b *backend) FullDuplexCall(st testgrpc.TestService_FullDuplexCallServer) error {
	if _, err := st.Recv(); err != nil {
		return err
	}
	return st.Send(new(testgrpc.StreamingOutputCallResponse))
}

// serve runs b at addr until the returned func is called.
func serve(t testing.TB, b *backend, addr string, options ...grpc.ServerOption) (string, func()) {
	t.Helper()
	return serveWith(t, b, addr, func(grpc.ServiceRegistrar) {}, options...)
}

// serveWith serves a further service too.
func serveWith(t testing.TB, b *backend, addr string, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) (string, func()) {
	t.Helper()
	var listener net.Listener
	eventually(t, "the address is free", func() (ok bool) {
		var err error
		listener, err = net.Listen("tcp", addr)
		return err == nil
	})
	s := grpc.NewServer(options...)
	testgrpc.RegisterTestServiceServer(s, b)
	register(s)
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(listener) })
	return listener.Addr().String(), func() { s.Stop(); serving.Wait() }
}

// TestStatsHandler makes calls of all kinds, while the backend restarts and
// retries are made by gRPC, and expects every attempt that was sent to end.
func TestStatsHandler(t *testing.T) {
	p := newPlane(t)
	p.push(cluster("users", 100))
	var zone sync.Map
	client := p.client(spillxds.Config{Locality: func(endpoint string) spillxds.Locality {
		zone.Store(endpoint, true)
		return spillxds.Locality{Zone: "z"}
	}})
	users := must(client.Cluster(key("users")))
	limitOf(t, users, 100)
	b := &backend{unary: func(ctx context.Context) error {
		switch rand.N(4) {
		case 0:
			return status.Error(codes.Unavailable, "busy")
		case 1:
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}
	addr, stop := serve(t, b, freeport.Address(t))
	var under underWay
	conn := must(grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(users.StatsHandler()), grpc.WithStatsHandler(&under), // which is told second
		grpc.WithDefaultServiceConfig(`{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":4,"initialBackoff":"0.001s",
			"maxBackoff":"0.01s","backoffMultiplier":1.5,"retryableStatusCodes":["UNAVAILABLE"]}}]}`)))
	defer conn.Close()
	calls := testgrpc.NewTestServiceClient(conn)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for i := range 100 {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				if i%3 == 0 {
					st, err := calls.FullDuplexCall(ctx)
					if err == nil {
						st.Send(new(testgrpc.StreamingOutputCallRequest))
						st.Recv()
					}
				} else {
					calls.UnaryCall(ctx, new(testgrpc.SimpleRequest))
				}
				cancel()
			}
		})
	}
	for range 5 {
		<-time.After(20 * time.Millisecond)
		stop()
		_, stop = serve(t, b, addr)
	}
	callers.Wait()
	eventually(t, "calls that were left have ended", func() bool { return under.n.Load() == 0 })
	stop()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	got := p.loads.users()
	t.Logf("%+v", got)
	if got.issued == 0 || got.issued != got.succeeded+got.failed || p.loads.localities["z"] != got {
		t.Errorf("reported %+v, by locality %+v", got, p.loads.localities)
	}
	if _, ok := zone.Load(addr); !ok {
		t.Errorf("the locality of %s was never asked for", addr)
	}
	if n := p.loads.inProgress["users"]; n != 0 {
		t.Errorf("%d in progress after the last call", n)
	}
}

// underWay counts attempts that were sent and have not ended. Those whose caller has
// left end later.
type underWay struct{ n atomic.Int64 }

type underWayKey struct{}

func (*underWay) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, underWayKey{}, new(atomic.Bool))
}

func (u *underWay) HandleRPC(ctx context.Context, s stats.RPCStats) {
	sent := ctx.Value(underWayKey{}).(*atomic.Bool)
	switch s.(type) {
	case *stats.OutHeader:
		if !sent.Swap(true) {
			u.n.Add(1)
		}
	case *stats.End:
		if sent.Swap(false) {
			u.n.Add(-1)
		}
	}
}

func (*underWay) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*underWay) HandleConn(context.Context, stats.ConnStats)                       {}

// TestCallsThatAreNotSentAreNotIssued: without a connection there is no header.
func TestCallsThatAreNotSentAreNotIssued(t *testing.T) {
	p := newPlane(t)
	p.push(cluster("users", 100))
	client := p.client(spillxds.Config{})
	users := must(client.Cluster(key("users")))
	limitOf(t, users, 100)
	conn := must(grpc.NewClient("passthrough:///nobody", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(users.StatsHandler()), grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return nil, errors.New("rejected")
		})))
	defer conn.Close()
	for range 10 {
		if _, err := testgrpc.NewTestServiceClient(conn).UnaryCall(t.Context(), new(testgrpc.SimpleRequest)); err == nil {
			t.Fatal("answered by nobody")
		}
	}
	client.Close()
	if got := p.loads.users(); got != (total{}) {
		t.Errorf("reported %+v", got)
	}
}
