package layers

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillgrpc"
	"github.com/seed90641741/spillway/spillhttp"
)

// measure is for a machine that has nothing else to do: tests then use real sockets and
// real time.
var measure = flag.Bool("measure", false, "use sockets and real time, and take longer")

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A network connects the services of a test: in memory, for tests in a bubble, or by sockets
// of the loopback network.
type network struct {
	t       *testing.T
	sockets bool

	mu      sync.Mutex
	dialers map[string]func(context.Context) (net.Conn, error)
}

func newNetwork(t *testing.T, sockets bool) *network {
	t.Helper()
	return &network{t: t, sockets: sockets, dialers: make(map[string]func(context.Context) (net.Conn, error))}
}

// listen returns a listener that ends with the test, and its address. Where it is in memory,
// gRPC needs connections with a buffer, as both ends begin by writing; the deadlines of those
// are not what net/http needs.
func (n *network) listen(buffered bool) (l net.Listener, address string) {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.sockets:
		var err error
		if l, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0"); err != nil {
			n.t.Fatal(err)
		}
		address = l.Addr().String()
		n.dialers[address] = func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) }
	case buffered:
		b := bufconn.Listen(64 << 10)
		l, address = b, n.name()
		n.dialers[address] = b.DialContext
	default:
		p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		l, address = p, n.name()
		n.dialers[address] = p.dial
	}
	n.t.Cleanup(func() { _ = l.Close() })
	return l, address
}

func (n *network) name() string { return fmt.Sprintf("service-%d:80", len(n.dialers)) }

// dial connects to an address.
func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	dialer := n.dialers[address]
	n.mu.Unlock()
	if dialer == nil {
		return nil, errors.New("no such address: " + address)
	}
	return dialer(ctx)
}

// pipes is a listener whose connections have no buffer.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve has a handler serve at a new address.
func (n *network) serve(h http.Handler) (address string) {
	n.t.Helper()
	l, address := n.listen(false)
	s := &http.Server{Handler: h, ConnState: spillhttp.ConnState}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	n.t.Cleanup(func() {
		_ = s.Close()
		serving.Wait()
	})
	return address
}

// serveGRPC has a service serve at a new address.
func (n *network) serveGRPC(s pb.TestServiceServer, c spillgrpc.ServerConfig) (address string) {
	n.t.Helper()
	l, address := n.listen(true)
	g := grpc.NewServer(must(spillgrpc.NewServer(c)).Options()...)
	pb.RegisterTestServiceServer(g, s)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(l) })
	n.t.Cleanup(func() {
		g.Stop()
		serving.Wait()
	})
	return address
}

// transport returns a transport of net/http.
func (n *network) transport() *http.Transport {
	n.t.Helper()
	t := &http.Transport{
		DialContext:         func(ctx context.Context, _, address string) (net.Conn, error) { return n.dial(ctx, address) },
		MaxIdleConnsPerHost: 1000,
	}
	n.t.Cleanup(t.CloseIdleConnections)
	return t
}

// channel returns a channel to a target of gRPC.
func (n *network) channel(target string, opts ...grpc.DialOption) *grpc.ClientConn {
	n.t.Helper()
	cc, err := grpc.NewClient(target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(n.dial),
	}, opts...)...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// newIngress returns the policies of a server, which end with the test.
func newIngress(t *testing.T, c ingress.Config) *ingress.Server {
	t.Helper()
	s := must(ingress.New(c))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// undaunted is a client whose retries only the number of attempts bounds.
func undaunted() egress.Config {
	return egress.Config{
		ThrottleMode: spillway.ModeOff,
		Retry:        must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}})),
	}
}

// service is a service of gRPC with one method.
type service struct {
	pb.UnimplementedTestServiceServer

	unary func(context.Context) error
}

func (s *service) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if err := s.unary(ctx); err != nil {
		return nil, err
	}
	return &pb.SimpleResponse{}, nil
}

// idempotent classifies all calls so.
func idempotent(context.Context, string) spillway.Call { return spillway.Call{Idempotent: true} }

func call(ctx context.Context, cc grpc.ClientConnInterface) error {
	_, err := pb.NewTestServiceClient(cc).UnaryCall(ctx, &pb.SimpleRequest{})
	return err
}
