package spillgrpc

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
)

// A limit that was set at run time outlives channels that wake from idle, and further
// channels with the same service config.
func TestLiveLimitSurvives(t *testing.T) {
	for _, before := range []bool{false, true} { // the first call
		inBubble(t, func(t *testing.T) {
			l, config := cluster(t, 500)
			x := open(t, (&service{}))
			cc := x.dial(config, grpc.WithIdleTimeout(time.Minute))
			if !before {
				wantCall(t, cc)
				wantLimit(t, l, "as configured", 500)
			}
			l.SetMaxInFlight(800)
			wantCall(t, cc)
			wantLimit(t, l, "after a call", 800)
			time.Sleep(10 * time.Minute) // the channel is idle
			wantCall(t, cc)
			wantLimit(t, l, "after the channel was idle", 800)
			wantCall(t, x.dial(config))
			wantLimit(t, l, "with another channel", 800)
			_, next := cluster(t, 600)
			wantCall(t, x.dial(next))
			wantLimit(t, l, "with another config", 600)
		})
	}
}

func wantCall(t *testing.T, cc grpc.ClientConnInterface) {
	t.Helper()
	if err := call(t.Context(), cc); err != nil {
		t.Fatal(err)
	}
}

func wantLimit(t *testing.T, l *inflight.Limiter, when string, n int) {
	t.Helper()
	if got := l.Stats(time.Now()).MaxInFlight; got != n {
		t.Errorf("%s: the limit is %d, want %d", when, got, n)
	}
}

// TestOneLimitInTwoPlaces gives a Client and the load balancing policy the same limit:
// each attempt counts once, of calls and of streams.
func TestOneLimitInTwoPlaces(t *testing.T) {
	for _, mode := range []spillway.Mode{spillway.ModeEnforce, spillway.ModeObserve, spillway.ModeOff} {
		t.Run(mode.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) { testOneLimit(t, mode) })
		})
	}
}

func testOneLimit(t *testing.T, mode spillway.Mode) {
	l, config := cluster(t, 4)
	server := &keepOpen{}
	client := mustClient(t, ClientConfig{Egress: egress.Config{InFlight: l, InFlightMode: mode}})
	cc := open(t, server.service()).dial(append(client.DialOptions(), config)...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rejected := 0
	for i := range 6 {
		st, err := pb.NewTestServiceClient(cc).FullDuplexCall(ctx)
		if err != nil {
			rejected++
		}
		if i%2 == 0 && err == nil {
			_ = st.CloseSend()
		}
		synctest.Wait()
	}
	if s := l.Stats(time.Now()); s.InFlight != 4 || rejected != 2 || server.all.Load() != 4 {
		t.Errorf("%+v, %d rejected and %d at the server, want 4 in flight, 2 rejected, and 4", s, rejected, server.all.Load())
	}
	cancel()
	synctest.Wait()
	if s := l.Stats(time.Now()); s.InFlight != 0 || s.SurplusTotal != 0 {
		t.Errorf("%+v is left", s)
	}
	l.SetMaxInFlight(1)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_ = call(ctx, cc)
		cancel()
		synctest.Wait()
	}
	if s := l.Stats(time.Now()); server.all.Load() != 7 || s.InFlight != 0 || s.SurplusTotal != 0 {
		t.Errorf("%d at the server, want 4 and 3 one after the other; %+v", server.all.Load(), s)
	}
}

// A cluster whose limit nothing sets is reported once, and no other.
func TestUnconfiguredCluster(t *testing.T) {
	for name, row := range map[string]struct {
		config BalancerConfig
		set    bool
		want   int
	}{
		"a name that nothing configures":     {BalancerConfig{Cluster: "usres"}, false, 1},
		"a limit in the config":              {BalancerConfig{Cluster: "users", MaxConcurrentRequests: new(uint32(7))}, false, 0},
		"a limit from a control plane":       {BalancerConfig{Cluster: "users"}, true, 0},
		"the default limit, for the channel": {BalancerConfig{}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var shared inflight.Registry
				var reports []string
				watch := &unconfigured{log: func(text string) { reports = append(reports, text) }, reported: map[inflight.Key]bool{}}
				for range 3 { // as a channel does that wakes from idle
					b := builder{&shared, watch}.Build(&channel{}, balancer.BuildOptions{})
					child := &childBuilder{name: "one"}
					if err := b.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: &parsedConfig{BalancerConfig: row.config, builder: child}}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(configuredWithin / 2)
					if row.set {
						l, release := shared.Share(inflight.Key{Cluster: row.config.Cluster})
						l.SetMaxInFlight(9)
						release()
					}
					time.Sleep(configuredWithin)
					synctest.Wait()
					b.Close()
				}
				if len(reports) != row.want || row.want > 0 && !strings.Contains(reports[0], `cluster "usres"`) {
					t.Errorf("%d reports, want %d: %q", len(reports), row.want, reports)
				}
			})
		})
	}
}
