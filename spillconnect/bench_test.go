package spillconnect

import (
	"context"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A handlerRequest is a request as a handler gets it: connect.NewRequest makes requests of clients.
type handlerRequest struct {
	*connect.Request[message]
	spec connect.Spec
}

func (r handlerRequest) Spec() connect.Spec { return r.spec }

// BenchmarkUnary is what the interceptors add to a call, without the call itself.
func BenchmarkUnary(b *testing.B) {
	server, err := NewServer(ServerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	client, err := NewClient(ClientConfig{})
	if err != nil {
		b.Fatal(err)
	}
	answer := connect.NewResponse(wrapperspb.String("x"))
	next := func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return answer, nil }
	for name, bench := range map[string]struct {
		call   connect.UnaryFunc
		client bool
	}{"server": {server.WrapUnary(next), false}, "client": {client.WrapUnary(next), true}} {
		b.Run(name, func(b *testing.B) {
			req := handlerRequest{connect.NewRequest(wrapperspb.String("x")), connect.Spec{Procedure: procedure, IsClient: bench.client}}
			req.Header().Set("Content-Type", "application/proto")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bench.call(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
