package spillgrpc

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"

	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/race"
)

// TestAllocations expects what each way through the package allocates, beyond grpc
// itself, which copies the trailer of a call for one more.
func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	cc := dial(t, "passthrough:///backend")
	client := mustClient(t, ClientConfig{})
	edge := mustServer(t, ingress.Config{Shed: patient}, ServerConfig{})
	inside := internal
	inside.Shed = patient
	trusting := mustServer(t, inside, ServerConfig{})
	unary := func(ctx context.Context) func() {
		return func() { _ = client.unary(ctx, methodUnary, nil, nil, cc, invoke) }
	}
	info := &grpc.UnaryServerInfo{FullMethod: methodUnary}
	handler := func(context.Context, any) (any, error) { return nil, nil }
	serve := func(s *Server, ctx context.Context) func() {
		return func() { _, _ = s.UnaryInterceptor(ctx, nil, info, handler) }
	}
	child := pickerFunc(func(balancer.PickInfo) (balancer.PickResult, error) { return balancer.PickResult{}, nil })
	full := must(inflight.New(inflight.Config{MaxInFlight: 1}))
	full.TryAcquire()
	p := &picker{child: child, limiter: full, drops: &drops{}, ready: true}
	for _, row := range []struct {
		name string
		want float64
		do   func()
	}{
		{"client", 1, unary(t.Context())},
		{"client, with criticality and deadline", 3, unary(label(t))},
		{"server", 1, serve(trusting, incoming(t))},
		{"server, with a stranger's deadline", 1, serve(edge, incoming(t))},
		{"server, with criticality", 1, serve(trusting, incoming(t, keyCriticality, "CRITICAL_PLUS"))},
		{"drop", 0, func() { _, _ = p.Pick(balancer.PickInfo{}) }},
	} {
		row.do() // which fills the pools
		if got := testing.AllocsPerRun(1000, row.do); got > row.want {
			t.Errorf("%s: %v allocations, want %v", row.name, got, row.want)
		}
	}
	if n := edge.ingress.Stats(time.Now()).Concurrency.Shared.InFlight; n != 0 {
		t.Errorf("%d left in flight", n)
	}
}
