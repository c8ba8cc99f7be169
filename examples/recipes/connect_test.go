package recipes_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	connectrpc "connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway/examples/recipes/connect"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
)

// A service of connect-go that has too many calls answers with an error that its client
// understands, and the client retries.
func TestConnect(t *testing.T) {
	limited := newIngress(t, ingress.Config{MaxInFlight: 1})
	entered, release := make(chan struct{}), make(chan struct{})
	handler, err := connect.NewServer(limited, func(_ context.Context, req *connectrpc.Request[wrapperspb.StringValue]) (*connectrpc.Response[wrapperspb.StringValue], error) {
		if req.Msg.GetValue() == "slow" {
			close(entered)
			<-release
		}
		return connectrpc.NewResponse(wrapperspb.String("Ada")), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	client, err := connect.NewClient(server.Client(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	call := func(id string) error {
		_, err := client.CallUnary(t.Context(), connectrpc.NewRequest(wrapperspb.String(id)))
		return err
	}
	if err := call("7"); err != nil {
		t.Error(err)
	}
	done := make(chan error)
	go func() { done <- call("slow") }()
	<-entered
	err = call("8")
	if e, ok := errors.AsType[*connectrpc.Error](err); !ok || e.Code() != connectrpc.CodeUnavailable || len(e.Details()) == 0 {
		t.Errorf("beyond the limit: %v, want unavailable with details", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What connect-go can do it can do behind a Handler: a stream goes through message by message, and a panic is the answer that
// connect-go makes of it.
func TestConnectBehindHandler(t *testing.T) {
	s := newSite()
	recovers := connectrpc.WithRecover(func(context.Context, connectrpc.Spec, http.Header, any) error {
		return connectrpc.NewError(connectrpc.CodeInternal, errors.New("recovered"))
	})
	mux := http.NewServeMux()
	mux.Handle("/stream", connectrpc.NewServerStreamHandler("/stream", s.messages, recovers))
	mux.Handle("/panics", connectrpc.NewUnaryHandler("/panics",
		func(context.Context, *connectrpc.Request[wrapperspb.StringValue]) (*connectrpc.Response[wrapperspb.StringValue], error) {
			panic("recipe")
		}, recovers))
	in := newIngress(t, ingress.Config{MaxInFlight: 1})
	address := start(t)(spillhttp.NewHandler(mux, spillhttp.HandlerConfig{Ingress: in}))

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() { s.feed <- "one" }() // no head comes before
	stream, err := connectClient(address, "/stream").CallServerStream(ctx, connectrpc.NewRequest(wrapperspb.String("")))
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"one", "two"} {
		if i > 0 {
			s.feed <- text
		}
		if !stream.Receive() || stream.Msg().GetValue() != text {
			t.Fatalf("%v, %v, want %q", stream.Msg(), stream.Err(), text)
		}
	}
	leave()
	<-s.ended
	_ = stream.Close()
	(&visit{ingress: in}).idle(t)
	_, err = connectClient(address, "/panics").CallUnary(t.Context(), connectrpc.NewRequest(wrapperspb.String("")))
	if connectrpc.CodeOf(err) != connectrpc.CodeInternal {
		t.Errorf("%v, want what connect-go recovers with", err)
	}
	(&visit{ingress: in}).idle(t)
}

func (s *site) messages(ctx context.Context, _ *connectrpc.Request[wrapperspb.StringValue], stream *connectrpc.ServerStream[wrapperspb.StringValue]) error {
	defer s.end()
	for {
		text, ok := s.next(ctx)
		if !ok {
			return ctx.Err()
		}
		if err := stream.Send(wrapperspb.String(text)); err != nil {
			return err
		}
	}
}

func connectClient(address, procedure string) *connectrpc.Client[wrapperspb.StringValue, wrapperspb.StringValue] {
	return connectrpc.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](http.DefaultClient, "http://"+address+procedure)
}
