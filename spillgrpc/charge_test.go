package spillgrpc

import (
	"context"
	"math"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/quota"
)

// aStream is a stream of nothing.
type aStream struct {
	grpc.ServerStream

	ctx context.Context
}

func (s *aStream) Context() context.Context { return s.ctx }

func (s *aStream) SetTrailer(metadata.MD) {}

func TestCharge(t *testing.T) {
	local := must(quota.NewLocal(quota.LocalConfig{Customers: map[string]quota.Limit{"mail": {Rate: 0.01}}}))
	s := mustServer(t, ingress.Config{
		Quota: quota.Config{Allocator: local, BurstSeconds: 3600, Cost: -1}, Shed: patient,
	}, ServerConfig{Classify: func(context.Context, string) spillway.Call { return spillway.Call{Customer: "mail"} }})
	used := func() float64 {
		for _, c := range s.ingress.Stats(time.Now()).Quota {
			if c.Customer == "mail" {
				return c.Debt * 36
			}
		}
		return 0
	}
	var kept context.Context
	serve := func(ctx context.Context) {
		kept = ctx //nolint:fatcontext // it outlives the call on purpose
		Charge(ctx, 5)
		derived, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		Charge(derived, 3) // adds up
		Charge(ctx, -2)
		Charge(ctx, math.NaN())
		if n := testing.AllocsPerRun(100, func() { Charge(ctx, 0) }); n > 0 && !race.Enabled {
			t.Errorf("%v allocations", n)
		}
	}
	for name, do := range map[string]func() error{
		"unary": func() error {
			_, err := s.UnaryInterceptor(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: methodUnary},
				func(ctx context.Context, _ any) (any, error) { serve(ctx); return nil, nil })
			return err
		},
		"stream": func() error {
			return s.StreamInterceptor(nil, &aStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: methodDuplex},
				func(_ any, ss grpc.ServerStream) error { serve(ss.Context()); return nil })
		},
	} {
		for range 2 {
			before := used()
			if err := do(); err != nil {
				t.Fatal(name, err)
			}
			Charge(kept, 10) // the handler has returned
			if got := used() - before; math.Abs(got-6) > 0.1 {
				t.Errorf("%s: %v is charged, want 6", name, got)
			}
		}
	}
	Charge(t.Context(), 1) // no call
}
