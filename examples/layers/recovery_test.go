package layers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/spillgrpc"
	"github.com/seed90641741/spillway/spillhttp"
)

// rated is a backend that serves so many calls per second, and rejects the others at once.
type rated struct {
	perSecond float64

	mu     sync.Mutex
	tokens float64
	filled time.Time
	calls  int
}

// serve reports whether a call is served.
func (q *rated) serve() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.tokens = min(q.tokens+now.Sub(q.filled).Seconds()*q.perSecond, q.perSecond/10)
	q.filled = now
	q.calls++
	if q.tokens < 1 {
		return false
	}
	q.tokens--
	return true
}

func (q *rated) received() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls
}

// UnaryCall implements the test service.
func (q *ratedService) UnaryCall(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if !q.serve() {
		return nil, status.Error(codes.Unavailable, "overloaded")
	}
	return new(pb.SimpleResponse), nil
}

type ratedService struct {
	pb.UnimplementedTestServiceServer
	*rated
}

// TestThrottleRecovers overloads a backend to ten times its capacity for 8 s, and then
// makes half as many calls as it can serve. In the overload the backend receives K = 2
// times its capacity; from one second after it on, 90 % of the calls are served. With
// -measure it prints the shares by sockets and real time.
func TestThrottleRecovers(t *testing.T) {
	for _, transport := range []string{"gRPC", "HTTP"} {
		t.Run(transport, func(t *testing.T) {
			if *measure {
				testRecovery(t, transport)
				return
			}
			synctest.Test(t, func(t *testing.T) { testRecovery(t, transport) })
		})
	}
}

const (
	ratedPerSecond = 200
	overloadFor    = 8 * time.Second
	recoveryFor    = 5 * time.Second
)

func testRecovery(t *testing.T, transport string) {
	t.Helper()
	backend := &rated{perSecond: ratedPerSecond, filled: time.Now()}
	call := dialGRPC
	if transport == "HTTP" {
		call = dialHTTP
	}
	client := &recovering{call: call(t, newNetwork(t, *measure), backend), begin: time.Now()}
	for client.at() < overloadFor+recoveryFor {
		every := time.Second / (10 * ratedPerSecond)
		if client.at() >= overloadFor {
			every = 2 * time.Second / ratedPerSecond
		}
		client.start(t.Context(), backend)
		client.next = client.next.Add(every)
		if client.next.Before(client.begin) {
			client.next = client.begin.Add(every)
		}
		<-time.After(time.Until(client.next))
	}
	client.calls.Wait()
	client.check(t)
}

// recovering is a client that counts by the second.
type recovering struct {
	call  func(context.Context) error
	begin time.Time
	next  time.Time
	calls sync.WaitGroup

	mu       sync.Mutex
	made     [(overloadFor + recoveryFor) / time.Second]int
	served   [(overloadFor + recoveryFor) / time.Second]int
	received [(overloadFor + recoveryFor) / time.Second]int // by the backend, until the end of the second
}

func (r *recovering) at() time.Duration { return time.Since(r.begin) }

// start makes a call.
func (r *recovering) start(ctx context.Context, backend *rated) {
	second := r.at() / time.Second
	r.calls.Go(func() {
		err := r.call(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.made[second]++
		r.received[second] = backend.received()
		if err == nil {
			r.served[second]++
		}
	})
}

func (r *recovering) check(t *testing.T) {
	t.Helper()
	over := int(overloadFor / time.Second)
	sent := float64(r.received[over-1]-r.received[2]) / float64(over-3) / ratedPerSecond
	text := fmt.Sprintf("the backend receives %.2f of its capacity; served after the overload:", sent)
	late := 0
	for i := over; i < len(r.made); i++ {
		share := float64(r.served[i]) / float64(r.made[i])
		text += fmt.Sprintf(" %.2f", share)
		if i > over && share < 0.9 {
			late++
		}
	}
	t.Log(text)
	if sent > 2.3 || late > 0 {
		t.Errorf("want at most 2.3, and 0.90 later than a second after the overload: %s", text)
	}
}

func dialGRPC(t *testing.T, n *network, backend *rated) func(context.Context) error {
	t.Helper()
	listener, address := n.listen(true)
	server := grpc.NewServer()
	pb.RegisterTestServiceServer(server, &ratedService{rated: backend})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	client := must(spillgrpc.NewClient(spillgrpc.ClientConfig{}))
	calls := pb.NewTestServiceClient(n.channel("passthrough:///"+address, client.DialOptions()...))
	return func(ctx context.Context) error {
		_, err := calls.UnaryCall(ctx, new(pb.SimpleRequest))
		return err
	}
}

func dialHTTP(t *testing.T, n *network, backend *rated) func(context.Context) error {
	t.Helper()
	address := n.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !backend.serve() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	client := &http.Client{Transport: must(spillhttp.NewTransport(spillhttp.TransportConfig{Base: n.transport()}))}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}
}
