package spillgrpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
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
		info := &grpc.UnaryServerInfo{FullMethod: methodUnary}
		stack := spilltest.Stack{
			Do: func(ctx context.Context, work func(context.Context) error) error {
				_, err := server.UnaryInterceptor(ctx, nil, info, func(ctx context.Context, _ any) (any, error) { return nil, work(ctx) })
				return err
			},
			InFlight: func() int { return gates.Stats(time.Now()).Concurrency.Shared.InFlight },
			Update:   func(s spilltest.Setup) error { return gates.Update(config(s)) },
			Rejected: func(err error) bool { return status.Code(err) == codes.Unavailable },
		}
		stack.Allocations.Served = 1   // the context of the call
		stack.Allocations.Rejected = 4 // a status with its details
		return stack
	})
}

// through makes calls through the interceptor of a client. What the backend answers has the
// codes of gRPC.
func through(client *Client, cc *grpc.ClientConn) spilltest.Do {
	return func(ctx context.Context, work func(context.Context) error) error {
		return client.unary(ctx, methodUnary, nil, nil, cc, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			err := work(ctx)
			if errors.Is(err, spilltest.ErrBusy) {
				return status.Error(codes.Unavailable, err.Error())
			}
			return err
		})
	}
}

func TestClientContract(t *testing.T) {
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		client := mustClient(t, ClientConfig{Egress: egress.Config{MaxInFlight: s.Limit, InFlightMode: s.Mode, Observer: s.Observer}})
		stack := spilltest.Stack{
			Do:       through(client, dial(t, "passthrough:///backend")),
			InFlight: func() int { return inFlight(client) },
		}
		stack.Allocations.Served = 2    // the options of the call, and the func around work
		stack.Allocations.Rejected = 18 // and an error with a status that has details
		return stack
	})
}

func TestClientContractOfRetries(t *testing.T) {
	spilltest.TestRetries(t, func(t *testing.T, s retry.Strategy) spilltest.Do {
		config := egress.Config{Retry: s, ThrottleMode: spillway.ModeOff}
		return through(mustClient(t, ClientConfig{Egress: config, Classify: idempotent}), dial(t, "passthrough:///backend"))
	})
}
