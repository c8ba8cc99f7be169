package spillconnect

import (
	"context"
	"net/http"
	"reflect"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spilltest"
)

// A noting interceptor notes the types of the connections of streams.
type noting struct{ client, handler *reflect.Type }

func (noting) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

func (n noting) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		*n.client = reflect.TypeOf(conn)
		return conn
	}
}

func (n noting) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		*n.handler = reflect.TypeOf(conn)
		return next(ctx, conn)
	}
}

// The connections of streams have each method of those of connect-go: interceptors may look for methods beyond those of the interface.
func TestConnectionsHaveAllMethods(t *testing.T) {
	var client, ourClient, handler, ourHandler reflect.Type
	if err := (&serverStream{}).Close(nil); err != nil {
		t.Errorf("without a connection: %v", err)
	}
	bare, ours := noting{&client, &handler}, noting{&ourClient, &ourHandler}
	// The first interceptor has the outermost connection of a client, and the innermost of a handler.
	s := start(t, map[string]http.Handler{procedure: connect.NewServerStreamHandler(procedure,
		func(context.Context, *connect.Request[message], *connect.ServerStream[message]) error { return nil },
		connect.WithInterceptors(bare, newServer(t, ServerConfig{}, ingress.Config{}), ours))})
	c := connect.NewClient[message, message](s.Client(), s.URL+procedure, connect.WithInterceptors(ours, newClient(t, ClientConfig{}), bare))
	stream, err := c.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("x")))
	if err != nil {
		t.Fatal(err)
	}
	for stream.Receive() {
	}
	_ = stream.Close()
	for _, pair := range [][2]reflect.Type{{client, ourClient}, {handler, ourHandler}} {
		if pair[0] == pair[1] {
			t.Fatalf("%v is that of connect-go", pair[1])
		}
		for _, method := range spilltest.MissingMethods(pair[0], pair[1]) {
			t.Errorf("%v has no %s, which %v has", pair[1], method, pair[0])
		}
	}
}
