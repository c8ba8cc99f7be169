package spillhttp

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/shed"
)

// nowhere is a ResponseWriter that keeps nothing.
type nowhere struct{ header http.Header }

func (w nowhere) Header() http.Header         { return w.header }
func (w nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (w nowhere) WriteHeader(int)             {}

// bare is a handler that does next to nothing.
var bare = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })

// incoming returns a request as a server sees one, with headers given as pairs.
func incoming(tb testing.TB, headers ...string) *http.Request {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodGet, "/search?q=go", nil)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "client/1.0")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// mustHandler returns a Handler in front of next, and what decides for it.
// mustHandler returns a Handler that leaves connections open: the closer has tests of
// its own.
func mustHandler(tb testing.TB, next http.Handler, gates ingress.Config, c HandlerConfig) *Handler {
	tb.Helper()
	c.Ingress = must(ingress.New(gates))
	tb.Cleanup(func() {
		if err := c.Ingress.Close(); err != nil {
			tb.Error(err)
		}
	})
	h := must(NewHandler(next, c))
	h.closer.one.interval, h.closer.many.interval = 0, 0
	return h
}

// none is a quota that rejects everybody.
func none() quota.Config {
	return quota.Config{Allocator: must(quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 1e-9}})), BurstSeconds: 0.01}
}

var internal = ingress.Config{Trust: ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus}}

// busy is a load at which SHEDDABLE and SHEDDABLE_PLUS are rejected, and swamped one
// at which all are. The room is for what the process that tests happens to do.
var (
	busy    = ingress.Config{Load: utilization(0.94), Shed: patient}
	swamped = ingress.Config{Load: utilization(2), Shed: patient}
	patient = shed.Config{MaxWait: 10 * time.Second}
)

func utilization(level float64) load.Config {
	return load.Config{Signals: []load.Signal{{Name: "test", Read: func() float64 { return level }}}}
}

// journal is an Observer that remembers.
type journal struct {
	mu     sync.Mutex
	events []spillway.Event
}

func (j *journal) Observe(e spillway.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

// take returns what was observed of the shedder, and forgets it.
func (j *journal) take() (events []spillway.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events {
		if e.Policy == "shed" {
			events = append(events, e)
		}
	}
	j.events = nil
	return events
}

// nothingLeft fails for requests that are in flight or wait.
func nothingLeft(t *testing.T, h *Handler) {
	t.Helper()
	if s := h.ingress.Stats(time.Now()).Shed; s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("%d in flight, %d wait, want nothing left", s.InFlight, s.Waiting)
	}
}

// site is a server in a bubble, and a base whose connections lead to it.
type site struct {
	network *pipes
	server  *http.Server
	base    *http.Transport
}

// open starts a site, with HTTP/1.1 or HTTP/2 without TLS. If it is early, it
// rejects by a Listener where it can.
func open(t *testing.T, protocol string, h http.Handler, early bool) *site {
	t.Helper()
	return openWith(t, protocol, h, early, func(*http.Server) {})
}

// openWith is open with a server that set changes.
func openWith(t *testing.T, protocol string, h http.Handler, early bool, set func(*http.Server)) *site {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(protocol == "HTTP1")
	protocols.SetUnencryptedHTTP2(protocol == "h2c")
	s := &site{network: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}}
	s.server = &http.Server{Handler: h, Protocols: protocols, ErrorLog: quiet}
	set(s.server)
	s.base = &http.Transport{DialContext: s.network.dial, Protocols: protocols}
	go func() {
		if x, ok := h.(*Handler); ok && early {
			_ = x.Serve(s.server, s.network)
		} else {
			_ = s.server.Serve(s.network)
		}
	}()
	return s
}

func (s *site) close() {
	s.base.CloseIdleConnections()
	s.server.Close()
	time.Sleep(time.Second) // connections that end with a body unread stay for half of that
}

// everyWay runs test in bubbles: HTTP/1.1 and HTTP/2, each without a Listener and
// with one.
func everyWay(t *testing.T, test func(t *testing.T, protocol string, early bool)) {
	t.Helper()
	for _, way := range []struct {
		name, protocol string
		early          bool
	}{{"HTTP1", "HTTP1", false}, {"HTTP1 early", "HTTP1", true}, {"h2c", "h2c", false}, {"h2c early", "h2c", true}} {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, way.protocol, way.early) })
		})
	}
}
