package spillgrpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// TestStrangersDoNotThrottleOthers: callers at an edge may leave as little time as they
// like, and the backend that then does not answer in it is still called for others.
// Callers inside are believed.
func TestStrangersDoNotThrottleOthers(t *testing.T) {
	cc := dial(t, "passthrough:///backend")
	for _, row := range []struct {
		boundary ingress.Boundary
		served   bool
	}{{ingress.Edge, true}, {ingress.Internal, false}} {
		t.Run(row.boundary.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := mustClient(t, ClientConfig{})
				s := mustServer(t, ingress.Config{Trust: ingress.Trust{Boundary: row.boundary}, ShedMode: spillway.ModeOff}, ServerConfig{})
				call := func(timeout, takes time.Duration) error {
					ctx, cancel := context.WithTimeout(incoming(t), timeout)
					defer cancel()
					backend := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
						select {
						case <-ctx.Done():
							return status.FromContextError(ctx.Err()).Err()
						case <-time.After(takes):
							return nil
						}
					}
					_, err := s.UnaryInterceptor(ctx, nil, &grpc.UnaryServerInfo{FullMethod: methodUnary}, func(ctx context.Context, _ any) (any, error) {
						return nil, client.unary(ctx, methodUnary, nil, nil, cc, backend)
					})
					return err
				}
				for range 100 {
					if call(5*time.Millisecond, time.Second) == nil {
						t.Fatal("it was not late")
					}
				}
				served := true
				for range 20 {
					err := call(time.Minute, time.Millisecond)
					if served = served && err == nil; err != nil && !errors.Is(err, spillway.ErrRejected) {
						t.Error(err)
					}
				}
				if served != row.served {
					t.Errorf("others are served: %v, want %v", served, row.served)
				}
			})
		})
	}
}
