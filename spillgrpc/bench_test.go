package spillgrpc

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/metadata"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/ingress"
)

// invoke is a channel that answers at once.
func invoke(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
	return nil
}

func label(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(spillway.WithCriticality(tb.Context(), spillway.Sheddable), time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

// BenchmarkUnary is what a Client adds to a call.
func BenchmarkUnary(b *testing.B) {
	cc := dial(b, "passthrough:///backend")
	client := mustClient(b, ClientConfig{})
	withMetadata := metadata.AppendToOutgoingContext(label(b), "authorization", "Bearer abc")
	for _, bench := range []struct {
		name string
		ctx  context.Context
		call grpc.UnaryClientInterceptor
	}{
		{"bare", b.Context(), func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoker(ctx, method, req, reply, cc, opts...)
		}},
		{"protected", b.Context(), client.unary},
		{"protected, with criticality and deadline", label(b), client.unary},
		{"protected, with other metadata", withMetadata, client.unary},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.call(bench.ctx, methodUnary, nil, nil, cc, invoke); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkServer is what a Server adds to a call.
func BenchmarkServer(b *testing.B) {
	edge := mustServer(b, ingress.Config{}, ServerConfig{})
	inside := mustServer(b, internal, ServerConfig{})
	rejecting := mustServer(b, ingress.Config{Quota: none()}, ServerConfig{})
	handler := func(context.Context, any) (any, error) { return nil, nil }
	for _, bench := range []struct {
		name   string
		method string
		ctx    context.Context
		call   grpc.UnaryServerInterceptor
	}{
		{"bare", methodUnary, incoming(b), func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			return handler(ctx, req)
		}},
		{"protected", methodUnary, incoming(b), edge.UnaryInterceptor},
		{"labelled", methodUnary, incoming(b, keyCriticality, "CRITICAL_PLUS"), inside.UnaryInterceptor},
		{"exempt", "/grpc.health.v1.Health/Check", incoming(b), edge.UnaryInterceptor},
		{"over quota", methodUnary, incoming(b), rejecting.UnaryInterceptor},
	} {
		b.Run(bench.name, func(b *testing.B) {
			info := &grpc.UnaryServerInfo{FullMethod: bench.method}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = bench.call(bench.ctx, nil, info, handler)
			}
		})
	}
}

// incoming returns the context of a call with a deadline, as a handler sees it.
func incoming(tb testing.TB, kv ...string) context.Context {
	tb.Helper()
	md := metadata.Pairs(append([]string{":authority", "backend", "content-type", "application/grpc", "user-agent", "grpc-go/1.85.0"}, kv...)...)
	ctx, cancel := context.WithTimeout(tb.Context(), time.Hour)
	tb.Cleanup(cancel)
	return metadata.NewIncomingContext(ctx, md)
}

// BenchmarkPick is what the load balancing policy adds to a pick.
func BenchmarkPick(b *testing.B) {
	child := newTaking(4)
	turns := pickerFunc(func(balancer.PickInfo) (balancer.PickResult, error) {
		child.next++
		return balancer.PickResult{SubConn: child.picked[child.next%4]}, nil
	})
	for _, bench := range []struct {
		name      string
		limit     int
		ejections *ejections
	}{{"admitted", 0, nil}, {"admitted, endpoints may be left out", 0, new(ejections)}, {"rejected", 1, nil}} {
		b.Run(bench.name, func(b *testing.B) {
			l := must(inflight.New(inflight.Config{MaxInFlight: bench.limit}))
			p := &picker{child: turns, limiter: l, drops: &drops{}, ready: true, ejections: bench.ejections}
			if bench.limit == 1 {
				l.TryAcquire()
			}
			b.ReportAllocs()
			for b.Loop() {
				if r, err := p.Pick(balancer.PickInfo{}); err == nil {
					r.Done(balancer.DoneInfo{})
				}
			}
		})
	}
}

// BenchmarkCall is the same over a connection, to see what it is worth.
func BenchmarkCall(b *testing.B) {
	for _, bench := range []struct {
		name           string
		client, server bool
		ctx            context.Context
	}{
		{"bare", false, false, b.Context()},
		{"client", true, false, b.Context()},
		{"server", false, true, b.Context()},
		{"both", true, true, b.Context()},
		{"both, with criticality and deadline", true, true, label(b)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var serve []grpc.ServerOption
			var dial []grpc.DialOption
			if bench.server {
				serve = mustServer(b, ingress.Config{}, ServerConfig{}).Options()
			}
			if bench.client {
				dial = mustClient(b, ClientConfig{}).DialOptions()
			}
			cc := open(b, &service{}, serve...).dial(dial...)
			b.ReportAllocs()
			for b.Loop() {
				if err := call(bench.ctx, cc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
