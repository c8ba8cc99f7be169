package spillgrpc

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/retry"
)

// hedges is a client that sends hedges after 50 ms.
func hedges() egress.Config {
	c := eager
	c.Hedge = retry.HedgeConfig{Delay: 50 * time.Millisecond, Writes: true}
	return c
}

// A trio is three servers behind one channel that takes turns. One of them may be stuck.
type trio struct {
	cc    *grpc.ClientConn
	calls [3]atomic.Int64
	left  atomic.Int64 // calls that a stuck server has seen to be canceled
	stuck atomic.Int64 // which one; -1: none
}

func newTrio(t *testing.T, c *Client) *trio {
	t.Helper()
	x := new(trio)
	x.stuck.Store(-1)
	sites := make(map[string]*site)
	r := manual.NewBuilderWithScheme("trio")
	var addresses []resolver.Address
	for i, name := range []string{"a", "b", "c"} {
		sites[name] = open(t, &service{unary: func(ctx context.Context) error { return x.serve(ctx, int64(i)) }})
		addresses = append(addresses, resolver.Address{Addr: name})
	}
	r.InitialState(resolver.State{Addresses: addresses})
	config := must(BalancerConfig{Cluster: t.Name()}.ServiceConfig())
	x.cc = dial(t, "trio:///", append(c.DialOptions(), grpc.WithResolvers(r), grpc.WithDefaultServiceConfig(config),
		grpc.WithContextDialer(func(ctx context.Context, name string) (net.Conn, error) { return sites[name].listener.DialContext(ctx) }))...)
	x.cc.Connect()
	synctest.Wait() // a server that connects later would change whose turn it is
	return x
}

func (x *trio) serve(ctx context.Context, i int64) error {
	x.calls[i].Add(1)
	if x.stuck.Load() != i {
		return grpc.SetHeader(ctx, metadata.Pairs("server", string(rune('a'+i))))
	}
	<-ctx.Done()
	x.left.Add(1)
	return ctx.Err()
}

// warm makes calls that earn what hedges cost.
func (x *trio) warm(t *testing.T, n int) {
	t.Helper()
	for range n {
		if err := call(t.Context(), x.cc); err != nil {
			t.Fatal(err)
		}
	}
}

// A call to a server that is stuck: the hedge goes to another server although it is the turn of
// the same one. The caller gets its header and its peer, and the stuck server sees that its
// call is canceled.
func TestHedgeElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := mustClient(t, ClientConfig{Egress: hedges(), Classify: idempotent})
		x := newTrio(t, c)
		x.warm(t, 30)
		for range 6 {
			x.stuck.Store(0)
			var all sync.WaitGroup
			for range 3 { // one of them goes to the stuck server
				all.Go(func() {
					var header, trailer metadata.MD
					var p peer.Peer
					if err := call(t.Context(), x.cc, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&p)); err != nil {
						t.Error(err)
					}
					if len(header.Get("server")) != 1 || header.Get("server")[0] == "a" || p.Addr == nil {
						t.Errorf("answered by %v, peer %v", header, p)
					}
				})
			}
			all.Wait() // the next turn would have been that of the stuck server
			x.stuck.Store(-1)
			x.warm(t, 21)
		}
		synctest.Wait()
		s := c.Stats(time.Now())["trio:///"].Hedge
		if s.SentTotal != 6 || s.WonTotal != 6 || x.left.Load() != 6 {
			t.Errorf("%+v, %d calls of the stuck server ended, want 6", s, x.left.Load())
		}
		if n := inFlight(c); n != 0 {
			t.Errorf("%d in flight", n)
		}
		<-time.After(2 * time.Second) // handlers of the losers
	})
}

// Calls that are not idempotent, streams, and calls of a client without hedges are sent once.
func TestHedgeNot(t *testing.T) {
	for name, config := range map[string]ClientConfig{
		"off":            {Egress: eager, Classify: idempotent},
		"not idempotent": {Egress: hedges(), Classify: classify(false)},
	} {
		inBubble(t, func(t *testing.T) {
			c := mustClient(t, config)
			var calls atomic.Int64
			s := open(t, &service{unary: func(context.Context) error {
				calls.Add(1)
				<-time.After(time.Second)
				return nil
			}})
			cc := s.dial(c.DialOptions()...)
			for range 30 {
				if err := call(t.Context(), cc); err != nil {
					t.Fatal(err)
				}
			}
			if calls.Load() != 30 {
				t.Errorf("%s: %d calls arrived of 30", name, calls.Load())
			}
		})
	}
	inBubble(t, func(t *testing.T) {
		c := mustClient(t, ClientConfig{Egress: hedges(), Classify: idempotent})
		var calls atomic.Int64
		s := open(t, &service{duplex: func(duplexServer) error {
			calls.Add(1)
			<-time.After(time.Second)
			return nil
		}})
		cc := s.dial(c.DialOptions()...)
		for range 30 {
			stream, err := pb.NewTestServiceClient(cc).FullDuplexCall(t.Context())
			if err == nil {
				_, _ = stream.Recv()
			}
		}
		if calls.Load() != 30 {
			t.Errorf("%d streams arrived of 30", calls.Load())
		}
	})
}

// An answer that is no failure counts, if it is that of the hedge, too. The first attempt ends
// late, and writes nothing into what the caller has.
func TestHedgeAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := mustClient(t, ClientConfig{Egress: hedges(), Classify: idempotent})
		var calls atomic.Int64
		s := open(t, &service{unary: func(ctx context.Context) error {
			if calls.Add(1) == 31 {
				<-time.After(time.Second)
				return nil
			}
			if calls.Load() > 31 {
				return status.Error(codes.NotFound, "no such object")
			}
			return nil
		}})
		cc := s.dial(c.DialOptions()...)
		for range 30 {
			if err := call(t.Context(), cc); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		if err := call(t.Context(), cc); status.Code(err) != codes.NotFound || time.Since(start) > 100*time.Millisecond {
			t.Errorf("%v after %v, want NotFound of the hedge", err, time.Since(start))
		}
		<-time.After(2 * time.Second)
	})
}

// 1000 calls at once to servers that are all slow: ten hedges at most.
func TestHedgeCrowd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		config := hedges()
		config.MaxInFlight = -1
		c := mustClient(t, ClientConfig{Egress: config, Classify: idempotent})
		s := open(t, &service{unary: func(context.Context) error { <-time.After(time.Second); return nil }})
		cc := s.dial(c.DialOptions()...)
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { _ = call(t.Context(), cc) })
		}
		all.Wait()
		if n := c.Stats(time.Now())[cc.Target()].Hedge.SentTotal; n == 0 || n > 10 {
			t.Errorf("%d hedges", n)
		}
		synctest.Wait() // losers give back their slots
		if n := inFlight(c); n != 0 {
			t.Errorf("%d in flight", n)
		}
		<-time.After(2 * time.Second) // handlers of the losers
	})
}
