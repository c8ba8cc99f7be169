package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// A site is an endpoint of HTTP/2 and those who call it. It notes who connects.
type site struct {
	*endpoints
	accepted atomic.Int64
	begun    chan bool
	finish   chan bool // closed: calls end
	ended    chan error
}

// newSite returns one whose connections serve so many calls at once.
func newSite(t *testing.T, streams int, secured bool) *site {
	s := &site{begun: make(chan bool, 999), finish: make(chan bool), ended: make(chan error, 999)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.begun <- true; <-s.finish }))
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.accepted.Add(1)
		}
	}
	var of *tls.Config
	if server.EnableHTTP2 = secured; secured {
		server.StartTLS()
		of = server.Client().Transport.(*http.Transport).TLSClientConfig
	} else {
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
	}
	t.Cleanup(server.Close)
	s.endpoints = newEndpoints(&config.Cluster{Endpoints: []string{server.Listener.Addr().String()}, Protocol: "http2"}, of)
	t.Cleanup(s.close)
	return s
}

// call sends one call.
func (s *site) call(ctx context.Context) {
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://any", http.NoBody)
	resp, err := s.RoundTrip(r)
	if err == nil {
		err = resp.Body.Close()
	}
	s.ended <- err
}

// TestFewHandshakesForManyCalls: calls that come while there is no connection share the first one, and more connections are made
// while all streams are in use. Calls do not learn at once that they have a connection, so that some more are made. A connection
// with fewer streams than net/http expects rejects some calls, which need another one.
func TestFewHandshakesForManyCalls(t *testing.T) {
	for _, c := range []struct{ calls, streams, least int }{{60, 100, 1}, {350, 100, 4}, {300, 50, 6}, {60, 10, 6}} {
		for _, secured := range []bool{false, true} {
			s := newSite(t, c.streams, secured)
			for range c.calls {
				go s.call(t.Context())
			}
			for range c.calls {
				select {
				case <-s.begun:
				case err := <-s.ended:
					t.Fatalf("TLS %v, %d streams: %v", secured, c.streams, err)
				}
			}
			if n := int(s.accepted.Load()); n < c.least || n > c.least+c.calls/4 {
				t.Errorf("TLS %v: %d connections of %d streams for %d calls, want about %d", secured, n, c.streams, c.calls, c.least)
			}
			close(s.finish)
			for range c.calls {
				if err := <-s.ended; err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestHandshakeThatFails: all who wait for it share the error, and the next call tries again.
func TestHandshakeThatFails(t *testing.T) {
	const calls = 60
	synctest.Test(t, func(t *testing.T) {
		s := &site{endpoints: newEndpoints(&config.Cluster{Endpoints: []string{"nowhere:1"}, Protocol: "http2"}, nil), ended: make(chan error, calls)}
		defer s.close()
		broken := errors.New("nobody listens")
		dials := 0
		s.dial(func(context.Context, string, string) (net.Conn, error) {
			dials++
			<-time.After(time.Second)
			return nil, broken
		})
		leaves, leave := context.WithCancel(t.Context())
		go s.call(leaves) // it may be the one for which the connection is made
		for range calls {
			go s.call(t.Context())
		}
		synctest.Wait()
		leave()
		if err := <-s.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v of a call that left, want %v", err, context.Canceled)
		}
		for range calls {
			if err := <-s.ended; !errors.Is(err, broken) {
				t.Errorf("%v, want %v", err, broken)
			}
		}
		if dials != 1 {
			t.Errorf("%d attempts to connect for %d calls, want 1", dials, calls)
		}
		if s.call(t.Context()); dials != 2 {
			t.Errorf("%d attempts to connect after the next call, want 2", dials)
		}
	})
}

// TestTurns: as many connections are made at once as there are.
func TestTurns(t *testing.T) {
	var h handshakes
	made := []net.Conn{}
	dial := h.inTurn(func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			if _, err := theirs.Write(make([]byte, 1)); err != nil {
				t.Error(err)
			}
		}()
		return ours, nil
	})
	atOnce := func() (n int) {
		for h.begin("a") == nil {
			n++
		}
		for range n {
			h.ended("a", 0, nil)
		}
		return n
	}
	got := []int{atOnce()}
	for range 4 {
		c, err := dial(t.Context(), "tcp", "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		made = append(made, c)
		got = append(got, atOnce())
	}
	for _, c := range made[1:] {
		if err := errors.Join(c.Close(), c.Close()); err != nil { // the second one counts nothing
			t.Error(err)
		}
	}
	if got = append(got, atOnce()); !slices.Equal(got, []int{1, 1, 2, 3, 4, 1}) {
		t.Errorf("%v connections at once, want one at least, and else as many as there are", got)
	}
}
