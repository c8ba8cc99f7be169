package spillgrpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/thorough"
)

// cluster names a limit and returns it, with a dial option for channels under it.
func cluster(tb testing.TB, n uint32) (*inflight.Limiter, grpc.DialOption) {
	tb.Helper()
	key := inflight.Key{Cluster: tb.Name()}
	l, release := limits.Share(key)
	tb.Cleanup(release)
	config := must(BalancerConfig{Cluster: key.Cluster, MaxConcurrentRequests: &n}.ServiceConfig())
	return l, grpc.WithDefaultServiceConfig(config)
}

// keepOpen keeps calls open, as the interop server does, and counts them.
type keepOpen struct {
	now, high, all atomic.Int64

	mu   sync.Mutex
	open map[context.Context]bool
}

func (k *keepOpen) service() *service {
	return &service{
		unary: func(ctx context.Context) error { k.hold(ctx); return nil },
		duplex: func(ss duplexServer) error {
			k.hold(ss.Context())
			return nil
		},
	}
}

func (k *keepOpen) hold(ctx context.Context) {
	k.all.Add(1)
	k.now.Add(1)
	defer k.now.Add(-1)
	raise(&k.high, k.enter(ctx))
	<-ctx.Done()
}

// enter returns how many calls there are with this one. A call that has ended no
// longer counts, though its goroutine may not have noticed yet.
func (k *keepOpen) enter(ctx context.Context) (n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open == nil {
		k.open = make(map[context.Context]bool)
	}
	k.open[ctx] = true
	for c := range k.open {
		if c.Err() != nil {
			delete(k.open, c)
		}
	}
	return int64(len(k.open))
}

// TestThreeOfAHundred expects of 100 calls beyond 3 that are in flight exactly 100
// rejected, by one pick each.
func TestThreeOfAHundred(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, config := cluster(t, 3)
		server := &keepOpen{}
		cc := open(t, server.service()).dial(config)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 3 {
			if _, err := pb.NewTestServiceClient(cc).FullDuplexCall(ctx); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		var rejected atomic.Int32
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				err := call(ctx, cc)
				if status.Code(err) == codes.Unavailable && errors.Is(err, spillway.ErrRejected) {
					rejected.Add(1)
				}
			})
		}
		all.Wait()
		s := l.Stats(time.Now())
		if rejected.Load() != 100 || server.all.Load() != 3 || s.InFlight != 3 || s.RejectedTotal != 100 {
			t.Errorf("%d rejected, %d reached the server, %+v; want 100, 3, 3 in flight and 100 drops", rejected.Load(), server.all.Load(), s)
		}
		cancel()
		synctest.Wait()
		if n := l.Stats(time.Now()).InFlight; n != 0 {
			t.Errorf("%d left in flight", n)
		}
	})
}

// TestDropIsFinal expects a drop to end a call: grpc does not retry it in spite of a
// retryPolicy, not even where the call waits for ready, and nor does a Client.
func TestDropIsFinal(t *testing.T) {
	policy := retryFive[:len(retryFive)-1]
	for _, ours := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			l, _ := cluster(t, 1)
			config := policy + fmt.Sprintf(`,"loadBalancingConfig":[{%q:{"cluster":%q,"maxConcurrentRequests":0}}]}`, BalancerName, t.Name())
			opts := []grpc.DialOption{grpc.WithDefaultServiceConfig(config)}
			if ours {
				opts = append(opts, mustClient(t, ClientConfig{Egress: eager, Classify: idempotent}).DialOptions()...)
			}
			server := &keepOpen{}
			cc := open(t, server.service()).dial(opts...)
			for _, wait := range []bool{false, true} {
				if err := call(t.Context(), cc, grpc.WaitForReady(wait)); status.Code(err) != codes.Unavailable || !errors.Is(err, spillway.ErrRejected) {
					t.Errorf("%v, want a drop", err)
				}
				if _, err := receive(t.Context(), cc); !errors.Is(err, spillway.ErrRejected) {
					t.Errorf("a stream: %v, want a drop", err)
				}
			}
			if d := l.Stats(time.Now()).RejectedTotal; d != 3+1 || server.all.Load() != 0 {
				t.Errorf("%d drops of 4 calls, %d at the server", d, server.all.Load())
			}
		})
	}
}

// TestNeverReady expects calls to backends that are never there to wait or to fail as
// ever, and none to be dropped.
func TestNeverReady(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, config := cluster(t, 1)
		cc := dial(t, "passthrough:///nobody", config, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := call(ctx, cc, grpc.WaitForReady(true)); status.Code(err) != codes.DeadlineExceeded {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err := call(t.Context(), cc); status.Code(err) != codes.Unavailable || errors.Is(err, spillway.ErrRejected) {
			t.Errorf("%v, want a failure of the connection", err)
		}
		if s := l.Stats(time.Now()); s.RejectedTotal != 0 || s.InFlight != 0 {
			t.Errorf("%+v, want no drops and none in flight", s)
		}
	})
}

// TestLimitLowered lowers a limit below what is in flight, and expects nothing
// admitted until it falls below.
func TestLimitLowered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, config := cluster(t, 10)
		server := &keepOpen{}
		cc := open(t, server.service()).dial(config)
		var ends []context.CancelFunc
		start := func() error {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := pb.NewTestServiceClient(cc).FullDuplexCall(ctx)
			if err != nil {
				cancel()
				return err
			}
			ends = append(ends, cancel)
			return nil
		}
		for range 10 {
			if err := start(); err != nil {
				t.Fatal(err)
			}
		}
		l.SetMaxInFlight(4)
		for left := 10; left >= 4; left-- {
			if err := start(); !errors.Is(err, spillway.ErrRejected) {
				t.Errorf("with %d in flight of 4: %v", left, err)
			}
			ends[left-1]()
			synctest.Wait()
		}
		if err := start(); err != nil {
			t.Errorf("with 3 in flight of 4: %v", err)
		}
		for _, end := range ends {
			end()
		}
		synctest.Wait()
		if n := l.Stats(time.Now()).InFlight; n != 0 {
			t.Errorf("%d left in flight", n)
		}
	})
}

// loopback starts a server on loopback, and returns its target.
func loopback(tb testing.TB, s *service, opts ...grpc.ServerOption) (target string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	serve(tb, l, s, opts...)
	return "passthrough:///" + l.Addr().String()
}

// serve starts a server, and returns what ends it before the test does.
func serve(tb testing.TB, l net.Listener, s *service, opts ...grpc.ServerOption) (stop func()) {
	tb.Helper()
	server := grpc.NewServer(opts...)
	pb.RegisterTestServiceServer(server, s)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	stop = sync.OnceFunc(func() {
		server.Stop()
		serving.Wait()
	})
	tb.Cleanup(stop)
	return stop
}

// TestNothingLeft makes 20,000 calls, and 100,000 in a thorough test, that are cancelled, run into deadlines, and
// meet backends that restart, and expects every counter at zero in the end.
func TestNothingLeft(t *testing.T) {
	calls := 20_000
	switch {
	case testing.Short():
		calls = 5_000
	case thorough.Enabled():
		calls = 100_000
	}
	l, config := cluster(t, 8)
	s := mustServer(t, ingress.Config{}, ServerConfig{})
	client := mustClient(t, ClientConfig{Egress: eager, Classify: idempotent})
	b := &backends{t: t, server: s}
	b.start(3)
	cc := dial(t, "manual:///backends", append(client.DialOptions(), config, grpc.WithResolvers(b.resolver()))...)
	done := make(chan struct{})
	var restarts sync.WaitGroup
	restarts.Go(func() { b.restart(done, calls/50) })
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for range calls / 16 {
				b.calls.Add(1)
				chaos(t.Context(), cc, random)
			}
		})
	}
	all.Wait()
	close(done)
	restarts.Wait()
	if err := cc.Close(); err != nil {
		t.Error(err)
	}
	b.stop()
	settle(t, func() error {
		shed := s.ingress.Stats(time.Now()).Shed
		if n, m, k := l.Stats(time.Now()).InFlight, inFlight(client), shed.InFlight+shed.Parked+shed.Waiting; n+m+k > 0 {
			return fmt.Errorf("%d in flight at the policy, %d at the client, %d at the server", n, m, k)
		}
		return nil
	})
	if surplus := l.Stats(time.Now()).SurplusTotal; surplus > 0 || l.Stats(time.Now()).RejectedTotal == 0 {
		t.Errorf("%+v, want no surplus and some drops", l.Stats(time.Now()))
	}
	t.Logf("%d restarts, %+v", b.restarts, l.Stats(time.Now()))
}

// chaos makes one call of some kind, that ends somehow.
func chaos(ctx context.Context, cc grpc.ClientConnInterface, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(3000))*time.Microsecond)
	defer cancel()
	if random.IntN(4) == 0 {
		time.AfterFunc(time.Duration(random.IntN(500))*time.Microsecond, cancel)
	}
	switch random.IntN(3) {
	case 0:
		_ = call(ctx, cc)
	case 1:
		_, _ = receive(ctx, cc)
	default:
		if s, err := pb.NewTestServiceClient(cc).FullDuplexCall(ctx); err == nil { // and leave it
			_ = s.Send(&outputRequest{})
		}
	}
}

// settle waits until what is left by the last calls has ended.
func settle(t *testing.T, left func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	err := left()
	for ; err != nil && time.Now().Before(deadline); err = left() {
		<-time.After(10 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
}

// backends are some servers, that come back at other addresses.
type backends struct {
	t        *testing.T
	server   *Server
	manual   *manual.Resolver
	stops    []func()
	addrs    []resolver.Address
	calls    atomic.Int64
	restarts int
}

func (b *backends) start(n int) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.t.Fatal(err)
		}
		b.addrs = append(b.addrs, resolver.Address{Addr: l.Addr().String()})
		b.stops = append(b.stops, serve(b.t, l, &service{unary: func(ctx context.Context) error {
			if rand.IntN(2) == 0 {
				<-ctx.Done()
			}
			return ctx.Err()
		}}, b.server.Options()...))
	}
}

func (b *backends) resolver() *manual.Resolver {
	b.manual = manual.NewBuilderWithScheme("manual")
	b.manual.InitialState(resolver.State{Addresses: b.addrs})
	return b.manual
}

// restart replaces the oldest backend each time that so many calls were made.
func (b *backends) restart(done <-chan struct{}, calls int) {
	for next := int64(calls); ; {
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
		}
		if b.calls.Load() < next {
			continue
		}
		next += int64(calls)
		b.stops[0]()
		b.stops, b.addrs = b.stops[1:], b.addrs[1:]
		b.start(1)
		b.restarts++
		b.manual.UpdateState(resolver.State{Addresses: b.addrs})
	}
}

func (b *backends) stop() {
	for _, stop := range b.stops {
		stop()
	}
}
