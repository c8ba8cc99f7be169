package spillgrpc

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spilltest"
)

// TestServerContract tests the interceptor of a server by the contract of all adapters.
func TestServerContract(t *testing.T) {
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		config := func(s spilltest.Setup) ingress.Config {
			return ingress.Config{MaxInFlight: s.Limit, InFlightMode: s.Mode, Observer: s.Observer}
		}
		gates, err := ingress.New(config(s))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = gates.Close() })
		server, err := NewServer(ServerConfig{Ingress: gates})
		if err != nil {
			t.Fatal(err)
		}
		info := &grpc.UnaryServerInfo{FullMethod: "/service/Method"}
		return spilltest.Stack{
			Do: func(ctx context.Context, work func(context.Context) error) error {
				_, err := server.UnaryInterceptor(ctx, nil, info, func(ctx context.Context, _ any) (any, error) { return nil, work(ctx) })
				return err
			},
			InFlight: func() int { return gates.Stats(time.Now()).Concurrency.Shared.InFlight },
			Update:   func(s spilltest.Setup) error { return gates.Update(config(s)) },
			Rejected: func(err error) bool { return status.Code(err) == codes.Unavailable },
		}
	})
}
