package spillconnect

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A message is the caller's again when the call has returned, also if its caller has left in the middle of a retry: each attempt that the
// server receives is of the call.
func TestMessagesAreTheCallersAgain(t *testing.T) {
	for name, options := range protocols {
		var mu sync.Mutex
		var got []string
		second, changed := make(chan struct{}), make(chan struct{})
		s := start(t, map[string]http.Handler{procedure: connect.NewUnaryHandler(procedure, func(ctx context.Context, req *connect.Request[message]) (*connect.Response[message], error) {
			mu.Lock()
			got = append(got, req.Msg.GetValue())
			n := len(got)
			mu.Unlock()
			if n == 1 {
				return nil, reject(ctx, ingress.Rejection{Outcome: spillway.OutcomeOverloaded, RetryAfter: time.Millisecond}, ingress.ReasonsCoarse)
			}
			close(second)
			<-changed
			return echo(ctx, req)
		})})
		c := connect.NewClient[message, message](s.Client(), s.URL+procedure, append(options, connect.WithInterceptors(newClient(t, ClientConfig{})))...)
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			<-second
			leave()
		}()
		req := connect.NewRequest(wrapperspb.String("shard-1"))
		if _, err := c.CallUnary(ctx, req); connect.CodeOf(err) != connect.CodeCanceled {
			t.Errorf("%s: %v", name, err)
		}
		req.Msg.Value = "shard-2"
		req.Header().Set("Again", "yes")
		close(changed)
		s.CloseClientConnections()
		mu.Lock()
		if want := []string{"shard-1", "shard-1"}; !slices.Equal(got, want) {
			t.Errorf("%s: the server received %q, want %q", name, got, want)
		}
		mu.Unlock()
	}
}

// With calls that are rejected and retried, as many connections are opened as without policies.
func TestRejectionsCloseNoConnection(t *testing.T) {
	for name, options := range protocols {
		if name == "gRPC" {
			continue // it needs HTTP/2, where all calls share a connection
		}
		rejects := newServer(t, ServerConfig{}, ingress.Config{MaxInFlight: 1, Shed: shed.Config{MaxWait: time.Millisecond}})
		bare, ours := opened(t, options, nil), opened(t, options, rejects)
		if bare != 1 || ours != 1 {
			t.Errorf("%s: %d connections opened, without policies %d", name, ours, bare)
		}
	}
}

// opened makes calls one after the other, and returns how many connections they take. With a Server, every second one is rejected, at
// each of its attempts.
func opened(t *testing.T, options []connect.ClientOption, rejects *Server) (n int32) {
	t.Helper()
	var conns atomic.Int32
	var handler []connect.HandlerOption
	if rejects != nil {
		handler = append(handler, connect.WithInterceptors(rejects))
	}
	s := httptest.NewUnstartedServer(connect.NewUnaryHandler(procedure, echo, handler...))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	if rejects != nil {
		options = append(slices.Clip(options), connect.WithInterceptors(newClient(t, ClientConfig{})))
	}
	call := caller(s, procedure, options...)
	for range 5 {
		if err := call(t.Context()); err != nil {
			t.Fatal(err)
		}
		if rejects == nil {
			continue
		}
		held, _ := rejects.ingress.Enter(t.Context(), spillway.Call{}, ratelimit.Caller{})
		if err := call(t.Context()); connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("%v, want a rejection", err)
		}
		held.Done(spillway.OutcomeServed)
	}
	return conns.Load()
}
