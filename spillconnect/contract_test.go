package spillconnect

import (
	"context"
	"errors"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spilltest"
)

// through makes calls through an interceptor, without a network. What the backend answers has
// the codes of connect-go.
func through(i connect.Interceptor, spec connect.Spec) spilltest.Do {
	answer := connect.NewResponse(wrapperspb.String("x"))
	return func(ctx context.Context, work func(context.Context) error) error {
		req := handlerRequest{connect.NewRequest(wrapperspb.String("x")), spec}
		_, err := i.WrapUnary(func(ctx context.Context, _ connect.AnyRequest) (connect.AnyResponse, error) {
			switch err := work(ctx); {
			case errors.Is(err, spilltest.ErrBusy):
				return nil, connect.NewError(connect.CodeUnavailable, err)
			case err != nil:
				return nil, err
			}
			return answer, nil
		})(ctx, req)
		return err
	}
}

func TestServerContract(t *testing.T) {
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		config := func(s spilltest.Setup) ingress.Config {
			return ingress.Config{MaxInFlight: s.Limit, InFlightMode: s.Mode, Observer: s.Observer}
		}
		server := newServer(t, ServerConfig{}, config(s))
		spec := connect.Spec{Procedure: procedure}
		stack := spilltest.Stack{
			Do:       through(server, spec),
			Bare:     through(new(nothing), spec),
			InFlight: func() int { return server.ingress.Stats(time.Now()).Concurrency.Shared.InFlight },
			Update:   func(s spilltest.Setup) error { return server.ingress.Update(config(s)) },
			Rejected: func(err error) bool { return connect.CodeOf(err) == connect.CodeUnavailable },
		}
		stack.Allocations.Served = 5   // the context of the call, what the context inherits, and the func around next
		stack.Allocations.Rejected = 9 // and an error with its details
		return stack
	})
}

// nothing is an interceptor that does nothing.
type nothing struct{ connect.Interceptor }

func (*nothing) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

func TestClientContract(t *testing.T) {
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		client := newClient(t, ClientConfig{Egress: egress.Config{MaxInFlight: s.Limit, InFlightMode: s.Mode, Observer: s.Observer}})
		spec := connect.Spec{Procedure: procedure, IsClient: true}
		stack := spilltest.Stack{
			Do:   through(client, spec),
			Bare: through(new(nothing), spec),
			InFlight: func() (n int) {
				for _, backend := range client.Stats(time.Now()) {
					n += backend.InFlight.InFlight
				}
				return n
			},
		}
		stack.Allocations.Served = 6   // the call, its context, headers, and the func around next
		stack.Allocations.Rejected = 7 // and an error
		return stack
	})
}

func TestClientContractOfRetries(t *testing.T) {
	spilltest.TestRetries(t, func(t *testing.T, s retry.Strategy) spilltest.Do {
		client := newClient(t, ClientConfig{
			Egress:   egress.Config{Retry: s, ThrottleMode: spillway.ModeOff},
			Classify: func(context.Context, connect.Spec) spillway.Call { return spillway.Call{Idempotent: true} },
		})
		return through(client, connect.Spec{Procedure: procedure, IsClient: true})
	})
}
