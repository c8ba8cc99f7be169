package spillgrpc

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/throttle"
)

// throttled returns what the throttles of a client know of CRITICAL calls.
func throttled(c *Client) (s throttle.ClassStats) {
	for _, x := range c.Stats(time.Now()) {
		s = x.Throttle[spillway.Critical.Index()]
	}
	return s
}

// TestStreamIsAccepted: a stream counts as accepted when it has begun, once, in whatever way it ends.
func TestStreamIsAccepted(t *testing.T) {
	message := func(ss outputServer) error { return ss.Send(&pb.StreamingOutputCallResponse{}) }
	head := func(ss outputServer) error { return ss.SendHeader(metadata.MD{}) }
	for name, c := range map[string]struct {
		begins          func(outputServer) error
		fails           bool // after a second; else the client cancels it
		during          float64
		accepts, counts float64
	}{
		"message, canceled": {begins: message, during: 1, accepts: 1, counts: 1},
		"message, breaks":   {begins: message, fails: true, during: 1, accepts: 1, counts: 1},
		"head, breaks":      {begins: head, fails: true, accepts: 1, counts: 1},
		"canceled":          {},
		"rejected":          {fails: true, counts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				client := mustClient(t, ClientConfig{})
				cc := open(t, &service{output: func(_ *outputRequest, ss outputServer) error {
					if c.begins != nil {
						if err := c.begins(ss); err != nil {
							return err
						}
					}
					select {
					case <-ss.Context().Done():
					case <-time.After(time.Second):
						if !c.fails {
							<-ss.Context().Done()
						}
					}
					return status.Error(codes.Unavailable, "broken")
				}}).dial(client.DialOptions()...)
				ctx, cancel := context.WithCancel(t.Context())
				var ended sync.WaitGroup
				ended.Go(func() { _, _ = receive(ctx, cc) })
				time.Sleep(time.Second / 2)
				if s := throttled(client); s.Accepts != c.during {
					t.Errorf("%v accepts while it is open, want %v", s.Accepts, c.during)
				}
				time.Sleep(time.Second)
				cancel()
				ended.Wait()
				synctest.Wait()
				if s := throttled(client); s.Accepts != c.accepts || s.Requests != c.counts {
					t.Errorf("%v accepts of %v calls in the end, want %v of %v", s.Accepts, s.Requests, c.accepts, c.counts)
				}
			})
		})
	}
}

// A fleet is some servers that can be stopped and started, and a client that watches them.
type fleet struct {
	t       *testing.T
	options []grpc.ServerOption
	servers sync.Map // name -> *running
	open    atomic.Int64
	ended   sync.WaitGroup
}

// running is a server that runs.
type running struct {
	listener *bufconn.Listener
	server   *grpc.Server
}

func (f *fleet) start(name string) {
	r := &running{newListener(), grpc.NewServer(f.options...)}
	pb.RegisterTestServiceServer(r.server, &service{output: func(_ *outputRequest, ss outputServer) error {
		if err := ss.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
		<-ss.Context().Done()
		return nil
	}})
	f.servers.Store(name, r)
	f.ended.Go(func() { _ = r.server.Serve(r.listener) })
}

func (f *fleet) stop(name string) {
	if r, ok := f.servers.LoadAndDelete(name); ok {
		r.(*running).server.Stop()
	}
}

func (f *fleet) dial(ctx context.Context, name string) (net.Conn, error) {
	r, ok := f.servers.Load(name)
	if !ok {
		return nil, errors.New("connection refused")
	}
	return r.(*running).listener.DialContext(ctx)
}

// inFleet is how many streams a fleet has, each opened again after half a second if it ends.
const inFleet = 100

// watch opens the streams to servers with the names, and returns what ends all.
func (f *fleet) watch(names []string, options ...grpc.DialOption) (end func()) {
	f.t.Helper()
	m := manual.NewBuilderWithScheme("fleet")
	var state resolver.State
	for _, name := range names {
		f.start(name)
		state.Addresses = append(state.Addresses, resolver.Address{Addr: name})
	}
	m.InitialState(state)
	quick := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.3, MaxDelay: 500 * time.Millisecond}
	cc := dial(f.t, "fleet:///all", append(options,
		grpc.WithResolvers(m), grpc.WithContextDialer(f.dial), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: quick, MinConnectTimeout: time.Second}))...)
	ctx, cancel := context.WithCancel(f.t.Context())
	for i := range inFleet {
		f.ended.Go(func() {
			time.Sleep(time.Duration(i) * time.Second / 2 / inFleet) // not all at the same time
			for ctx.Err() == nil {
				f.watchOnce(ctx, cc)
				time.Sleep(time.Second / 2)
			}
		})
	}
	return func() {
		cancel()
		for _, name := range names {
			f.stop(name)
		}
		f.ended.Wait()
	}
}

func (f *fleet) watchOnce(ctx context.Context, cc *grpc.ClientConn) {
	s, err := pb.NewTestServiceClient(cc).StreamingOutputCall(ctx, &outputRequest{})
	if err != nil {
		return
	}
	if _, err := s.Recv(); err != nil {
		return
	}
	f.open.Add(1)
	defer f.open.Add(-1)
	_, _ = s.Recv()
}

// restart stops one server for one and a half seconds, and returns how long after that all streams
// are open again.
func (f *fleet) restart(name string) time.Duration {
	time.Sleep(2 * time.Second)
	f.stop(name)
	time.Sleep(1500 * time.Millisecond)
	f.start(name)
	from := time.Now()
	for f.open.Load() < inFleet && time.Since(from) < time.Minute {
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(from)
}

// TestStreamsAfterRestarts: all streams are open again soon, whether the only server restarts or
// one of four. If there is only one, the first second is the wait for a probe.
func TestStreamsAfterRestarts(t *testing.T) {
	for name, c := range map[string]struct {
		servers []string
		more    time.Duration // than without the policies
	}{
		"one":         {[]string{"a"}, 3 * time.Second},
		"one of four": {[]string{"a", "b", "c", "d"}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			took := func(options ...grpc.DialOption) (d time.Duration) {
				inBubble(t, func(t *testing.T) {
					f := &fleet{t: t}
					end := f.watch(c.servers, options...)
					d = f.restart("a")
					end()
				})
				return d
			}
			plain, ours := took(), took(mustClient(t, ClientConfig{}).DialOptions()...)
			if ours > plain+c.more {
				t.Errorf("all open after %v, %v without the policies; want at most %v more", ours, plain, c.more)
			}
		})
	}
}

// TestStreamsThatAgeOut: a server that closes connections at some age, and with them the streams, is
// not overloaded.
func TestStreamsThatAgeOut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		client := mustClient(t, ClientConfig{})
		f := &fleet{t: t, options: []grpc.ServerOption{grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: 8 * time.Second, MaxConnectionAgeGrace: time.Second,
		})}}
		end := f.watch([]string{"a"}, client.DialOptions()...)
		for range 60 {
			time.Sleep(time.Second)
			if s := throttled(client); s.State != throttle.StateClosed || s.RejectedTotal > 0 {
				t.Errorf("the throttle is %v and has rejected %d calls", s.State, s.RejectedTotal)
			}
		}
		end()
	})
}
