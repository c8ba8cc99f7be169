package spillgrpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/thorough"
)

// interop is the circuit breaking case of the interop tests of gRPC: two services with
// separate limits. Calls to each are made at a rate and kept open for 20 s.
type interop struct {
	*testing.T

	first, second uint32 // the limits
	raised        uint32 // the first one, later
	every         time.Duration
	patience      time.Duration // with the machine, where time is real
	served        [2]keepOpen
	limiters      [2]*inflight.Limiter
	calls         sync.WaitGroup
	failed        atomic.Int64 // with another error than a drop
}

// run makes the calls and checks what is in flight. cc are the channels.
func (x *interop) run(cc [2]grpc.ClientConnInterface) {
	ctx, cancel := context.WithCancel(x.Context())
	for _, c := range cc {
		x.calls.Go(func() { x.load(ctx, c) })
	}
	time.Sleep(time.Duration(2*x.second) * x.every)
	for range 10 { // before and after, but not while the first calls end and others come
		x.check(x.first, x.second)
		time.Sleep(2500 * time.Millisecond)
	}
	start := time.Now()
	x.limiters[0].SetMaxInFlight(x.raised)
	for x.served[0].now.Load() < int64(x.raised)*95/100 && time.Since(start) < 10*time.Second {
		time.Sleep(5 * time.Millisecond)
	}
	took := time.Since(start)
	if fill := time.Duration(x.raised-x.first) * x.every; took > fill+time.Second/2 || took > time.Second {
		x.Errorf("after the limit was raised to %d it took %v until there were that many", x.raised, took)
	}
	x.Logf("raised from %d to %d within %v", x.first, x.raised, took)
	time.Sleep(time.Second)
	x.check(x.raised, x.second)
	cancel()
	x.calls.Wait()
	for i := range x.limiters {
		x.Logf("service %d: up to %d at once, %d calls served, %+v", i, x.served[i].high.Load(), x.served[i].all.Load(), x.limiters[i].Stats(time.Now()))
		if n := x.limiters[i].Stats(time.Now()).InFlight; n != 0 {
			x.Errorf("%d left in flight", n)
		}
	}
	if n := x.failed.Load(); n > 0 {
		x.Errorf("%d calls failed otherwise than by a drop", n)
	}
}

// load makes calls at a rate.
func (x *interop) load(ctx context.Context, cc grpc.ClientConnInterface) {
	next := time.Now()
	for ctx.Err() == nil {
		for ; !next.After(time.Now()); next = next.Add(x.every) {
			x.calls.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				switch err := call(ctx, cc); status.Code(err) {
				case codes.DeadlineExceeded, codes.Canceled, codes.OK: // the server sees the end as well
				default:
					if !errors.Is(err, spillway.ErrRejected) {
						x.failed.Add(1)
					}
				}
			})
		}
		time.Sleep(time.Until(next))
	}
}

// check expects each service to have between 0.95 and 1.01 of its limit in flight,
// and never to have had more than the limit. As in the interop tests, a service
// may be late to have enough.
func (x *interop) check(limits ...uint32) {
	for i, n := range limits {
		for end := time.Now().Add(x.patience); float64(x.served[i].now.Load()) < 0.95*float64(n) && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		now, high := float64(x.served[i].now.Load()), x.served[i].high.Load()
		if now < 0.95*float64(n) || now > 1.01*float64(n) || high > int64(n) {
			x.Errorf("service %d has %v calls of %d, and had %d", i, now, n, high)
		}
	}
}

// TestInterop is the case in virtual time.
func TestInterop(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		x := &interop{T: t, first: 50, second: 100, raised: 80, every: 10 * time.Millisecond}
		x.run(x.open(func(k *keepOpen, opts ...grpc.DialOption) grpc.ClientConnInterface {
			return open(t, k.service()).dial(opts...)
		}))
	})
}

// TestInteropLoopback is the case as it is, over real connections. It takes half a
// minute.
func TestInteropLoopback(t *testing.T) {
	if !thorough.Enabled() {
		t.Skip("takes half a minute: -tags thorough")
	}
	x := &interop{T: t, first: 500, second: 1000, raised: 800, every: time.Millisecond, patience: 20 * time.Second}
	x.run(x.open(func(k *keepOpen, opts ...grpc.DialOption) grpc.ClientConnInterface {
		return dial(t, loopback(t, k.service()), opts...)
	}))
}

// open makes the limits and the channels, with a retryPolicy that must not matter.
func (x *interop) open(site func(*keepOpen, ...grpc.DialOption) grpc.ClientConnInterface) (cc [2]grpc.ClientConnInterface) {
	for i, n := range []uint32{x.first, x.second} {
		key := inflight.Key{Cluster: fmt.Sprint(x.Name(), i)}
		l, release := limits.Share(key)
		x.Cleanup(release)
		x.limiters[i] = l
		cc[i] = site(&x.served[i], grpc.WithDefaultServiceConfig(retryFive[:len(retryFive)-1]+
			fmt.Sprintf(`,"loadBalancingConfig":[{%q:{"cluster":%q,"maxConcurrentRequests":%d}}]}`, BalancerName, key.Cluster, n)))
	}
	return cc
}
