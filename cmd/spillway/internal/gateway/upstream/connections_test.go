package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestWaitingForAConnectionIsNoFailureOfTheEndpoint: with one connection to it, an endpoint that has one
// request gets no other one. It is blamed for the one that it has only, and for connections that it does not accept.
func TestWaitingForAConnectionIsNoFailureOfTheEndpoint(t *testing.T) {
	begun := make(chan bool, 9)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- true
		<-r.Context().Done()
	}))
	defer server.Close()
	e := newEndpoints(&config.Cluster{Endpoints: []string{server.Listener.Addr().String()}, MaxConnections: 1}, nil)
	defer e.close()
	send := func(ctx context.Context) error {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://any", http.NoBody)
		resp, err := e.RoundTrip(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	first, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- send(first) }()
	<-begun

	waiting := soon()
	err := send(waiting)
	if !errors.Is(err, context.DeadlineExceeded) || e.all[0].errors.Load() != 0 {
		t.Errorf("%v while another request has the connection: %d failures of the endpoint, want none", err, e.all[0].errors.Load())
	}
	if a := errorOf(waiting, err, time.Now(), time.Now()); a.Outcome != spillway.OutcomeAbandoned {
		t.Errorf("its outcome is %v, want %v", a.Outcome, spillway.OutcomeAbandoned)
	}
	if got, want := FailureOf(err), "no connection was free before the deadline (max_connections of the cluster)"; got != want {
		t.Errorf("it failed as %q, want %q", got, want)
	}
	leave()
	<-left
	blamed := func(times uint64, what string) {
		for e.all[0].errors.Load() < times { // the former connection may take a moment to end
			if err := send(soon()); err == nil {
				t.Fatalf("%s: it is served", what)
			}
		}
		if got := e.all[0].errors.Load(); got != times {
			t.Errorf("%s: %d failures of the endpoint, want %d", what, got, times)
		}
	}
	blamed(1, "on a connection")
	e.plain.CloseIdleConnections()
	e.dial(func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	blamed(2, "without a connection that is accepted")
}
