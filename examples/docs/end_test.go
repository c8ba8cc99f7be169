package docs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/test/bufconn"
)

// An ending is a server that ends, and a call in flight.
type ending struct {
	ready func() bool   // what a health check says
	call  func() error  // makes a call
	since time.Time     // when the server was told to end
	first <-chan error  // what the call in flight returns
	ended chan struct{} // closed when the server has ended
	told  string        // what became of the call in flight
}

// at returns the state of the server some time after it was told to end.
func (e *ending) at(d time.Duration) string {
	time.Sleep(time.Until(e.since.Add(d)))
	synctest.Wait()
	select {
	case err := <-e.first:
		e.told = fmt.Sprint("ended, ", err)
	default:
	}
	server := "serves"
	select {
	case <-e.ended:
		server = "has ended"
	default:
		if e.call() != nil {
			server = "accepts no calls"
		}
	}
	return fmt.Sprintf("ready: %t, call: %s, server %s", e.ready(), e.told, server)
}

// ends checks that a server first tells load balancers, then accepts no more calls, and ends with its last call or
// after 25 s.
func ends(t *testing.T, start func(t *testing.T, ctx context.Context, work func()) *ending) {
	t.Helper()
	type row struct {
		at   time.Duration
		want string
	}
	for length, rows := range map[time.Duration][]row{
		8 * time.Second: {
			{0, "ready: false, call: in flight, server serves"},
			{4900 * time.Millisecond, "ready: false, call: in flight, server serves"},
			{5100 * time.Millisecond, "ready: false, call: in flight, server accepts no calls"},
			{7900 * time.Millisecond, "ready: false, call: in flight, server accepts no calls"},
			{9 * time.Second, "ready: false, call: ended, <nil>, server has ended"},
		},
		time.Hour: {
			{24900 * time.Millisecond, "ready: false, call: in flight, server accepts no calls"},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			stop, begun := make(chan struct{}), new(atomic.Bool)
			defer close(stop)
			e := start(t, ctx, func() {
				if begun.Swap(true) { // only the first call takes long
					return
				}
				select {
				case <-time.After(length):
				case <-stop:
				}
			})
			first := make(chan error, 1)
			e.first, e.told = first, "in flight"
			go func() { first <- e.call() }()
			synctest.Wait()
			if !e.ready() {
				t.Error("not ready before the end")
			}
			e.since = time.Now()
			end()
			for _, r := range rows {
				if got := e.at(r.at); got != r.want {
					t.Errorf("%v after SIGTERM, with a call of %v: %s, want %s", r.at, length, got, r.want)
				}
			}
			if got := e.at(26 * time.Second); !strings.HasSuffix(got, "server has ended") {
				t.Errorf("26 s after SIGTERM, with a call of %v: %s", length, got)
			}
		})
	}
}

func TestEndOfHTTP(t *testing.T) {
	ends(t, func(t *testing.T, ctx context.Context, work func()) *ending {
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		mux := http.NewServeMux()
		mux.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) { work() })
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.dial(ctx) }}
		t.Cleanup(transport.CloseIdleConnections)
		e := &ending{ended: make(chan struct{})}
		go func() {
			defer close(e.ended)
			_ = server(ctx, mux, l)
		}()
		get := func(path string) error {
			resp, err := (&http.Client{Transport: transport}).Get("http://server" + path)
			if err != nil {
				return err
			}
			if resp.StatusCode != http.StatusOK {
				err = errors.New(resp.Status)
			}
			return errors.Join(err, resp.Body.Close())
		}
		e.call = func() error { return get("/") }
		e.ready = func() bool { return get("/readyz") == nil }
		return e
	})
}

// slow is a service whose calls take time.
type slow struct {
	pb.UnimplementedTestServiceServer

	work func()
}

func (s slow) UnaryCall(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	s.work()
	return &pb.SimpleResponse{}, nil
}

func TestEndOfGRPC(t *testing.T) {
	ends(t, func(t *testing.T, ctx context.Context, work func()) *ending {
		l := bufconn.Listen(1 << 16)
		conn, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		e := &ending{ended: make(chan struct{})}
		go func() {
			defer close(e.ended)
			_ = rpcServer(ctx, l, slow{work: work})
		}()
		e.call = func() error {
			_, err := pb.NewTestServiceClient(conn).UnaryCall(context.Background(), &pb.SimpleRequest{})
			return err
		}
		e.ready = func() bool {
			answer, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
			return err == nil && answer.GetStatus() == healthpb.HealthCheckResponse_SERVING
		}
		return e
	})
}

// pipes is a listener whose connections need no network.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
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
	close(p.done)
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
