package spillgrpc

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// counted counts the connections that are opened to a site.
func counted(s *site, n *atomic.Int32) grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		n.Add(1)
		return s.listener.DialContext(ctx)
	})
}

// A server that rejects all calls, in interceptors and taps, closes no connection.
func TestRejectionsCloseNoConnection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := open(t, &service{}, mustServer(t, swamped, ServerConfig{}).Options()...)
		var dials atomic.Int32
		cc := s.dial(counted(s, &dials))
		for range 100 {
			if err := call(t.Context(), cc); status.Code(err) != codes.Unavailable {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if n := dials.Load(); n != 1 {
			t.Errorf("%d connections opened", n)
		}
	})
}

// Calls that a client rejects, repeats, hedges or leaves close no connection, and no number of them opens another one.
func TestCallsShareAConnection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var failing atomic.Int32
		s := open(t, &service{unary: func(ctx context.Context) error {
			if failing.Add(1)%3 == 0 {
				return says(codes.Unavailable, keyPushback, "1")(ctx)
			}
			time.Sleep(time.Second)
			return nil
		}})
		config := hedges()
		config.MaxInFlight = 10
		var dials atomic.Int32
		cc := s.dial(append(mustClient(t, ClientConfig{Egress: config, Classify: idempotent}).DialOptions(), counted(s, &dials))...)
		ends := make(map[codes.Code]int)
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%5+1)*500*time.Millisecond)
				defer cancel()
				err := call(ctx, cc)
				mu.Lock()
				defer mu.Unlock()
				ends[status.Code(err)]++
			})
			time.Sleep(20 * time.Millisecond)
		}
		all.Wait()
		time.Sleep(time.Minute) // handlers end
		if n := dials.Load(); n != 1 || len(ends) < 3 {
			t.Errorf("%d connections opened by calls that end with %v", n, ends)
		}
	})
}

// Streams that wait for an event teach a client nothing, however many and for however long: its other calls are sent. Max_requests counts
// them, as in Envoy.
func TestIdleStreamsOfAClient(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const idle = 200
		s := open(t, &service{output: func(_ *outputRequest, ss outputServer) error {
			<-ss.Context().Done()
			return ss.Context().Err()
		}})
		client := mustClient(t, ClientConfig{Egress: egress.Config{MaxInFlight: idle + 1}})
		cc := s.dial(client.DialOptions()...)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		for range idle {
			ss, err := pb.NewTestServiceClient(cc).StreamingOutputCall(ctx, &outputRequest{})
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = ss.Recv() }()
		}
		for i := range 100 {
			time.Sleep(10 * time.Second)
			if i == 50 { // half of the calls come after the end of all streams
				leave()
			}
			if err := call(t.Context(), cc); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		for _, st := range client.Stats(time.Now()) {
			if p := st.Throttle[spillway.Critical.Index()].Probability; p > 0 || st.InFlight.InFlight != 0 {
				t.Errorf("the throttle rejects with probability %v, %d are in flight", p, st.InFlight.InFlight)
			}
		}
	})
}
