package spillhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spilltest"
)

var errStatus = errors.New("not 200")

// burning is a body in parts.
type burning struct {
	f    *spilltest.Fuse
	name string
	left int
}

func (b *burning) Read(p []byte) (int, error) {
	if b.f.Burn(b.name + " Read"); b.left == 0 {
		return 0, io.EOF
	}
	b.left--
	return copy(p, "x"), nil
}

func (b *burning) Close() error {
	b.f.Burn(b.name + " Close")
	return nil
}

// fetch makes a request with a body if it has one, and reads the answer. The bodies are closed whatever happens, as callers do.
func fetch(ctx context.Context, rt http.RoundTripper, body io.ReadCloser) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://backend.example/path", nil)
	if err != nil {
		return err
	}
	if body != nil {
		req.Method, req.Body, req.ContentLength = http.MethodPost, body, -1
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errStatus
	}
	return nil
}

// transportRig is a Transport whose base is the backend.
type transportRig struct {
	*Transport
	*spilltest.Fuse
}

func (r transportRig) Held() int    { return inFlight(r.Transport) }
func (r transportRig) Close() error { return nil }

func (r transportRig) base(req *http.Request) (*http.Response, error) {
	switch err := r.Work(req.Context()); {
	case errors.Is(err, spilltest.ErrBusy):
		return answer(req, http.StatusServiceUnavailable, "busy"), nil
	case err != nil:
		return nil, err
	}
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
	}
	resp := answer(req, http.StatusOK, "")
	resp.Body = &burning{r.Fuse, "answer", 3}
	return resp, nil
}

func panicsOfTransport(t *testing.T) {
	points := spilltest.Calls(func(ctx context.Context, r transportRig) error { return fetch(ctx, r, nil) }, nil)
	points.Waiting.Do, points.Waiting.Not = nil, "a client has no queue"
	points.Stream.Do = func(ctx context.Context, f *spilltest.Fuse, r transportRig) error {
		return fetch(ctx, r, &burning{f, "request", 3})
	}
	points.Unseen = map[string]string{"race[...]).fire": "it fires after the call has its answer"}
	spilltest.TestPanics(t, func(t *testing.T, f *spilltest.Fuse) transportRig {
		named := func(callback, name string) func(*http.Request) string {
			return func(*http.Request) string { f.Burn(callback); return name }
		}
		var c egress.Config
		if f.Point == "Hedge" {
			c.Hedge = retry.HedgeConfig{Delay: 50 * time.Millisecond}
		}
		r := transportRig{Fuse: f}
		r.Transport = must(NewTransport(TransportConfig{
			Base: baseFunc(r.base), Egress: f.Egress(c), Backend: named("Backend", "backend"), Customer: named("Customer", "c"), Route: named("Route", "r"),
			External: func(*http.Request) bool { f.Burn("External"); return false },
		}))
		for range 20 { // which pay for a hedge
			_ = fetch(t.Context(), r, nil)
		}
		return r
	}, points)
}

// handlerRig is a Handler behind a middleware that recovers, in a server with a client.
type handlerRig struct {
	*site
	*Handler
}

func (r handlerRig) Held() int {
	s := r.ingress.Stats(time.Now())
	return s.Shed.InFlight + s.Shed.Waiting + s.InFlight.InFlight + s.InFlight.Waiting
}

func (r handlerRig) Close() error {
	r.site.close()
	return r.ingress.Close()
}

func panicsOfHandler(t *testing.T) {
	for _, way := range []struct {
		protocol string
		early    bool
	}{{"HTTP1", false}, {"HTTP1", true}, {"h2c", true}} {
		name := way.protocol
		if way.early {
			name += " early"
		}
		t.Run(name, func(t *testing.T) { panicsOfServer(t, way.protocol, way.early) })
	}
}

func panicsOfServer(t *testing.T, protocol string, early bool) {
	t.Helper()
	get := func(ctx context.Context, r handlerRig) error { return fetch(ctx, r.base, nil) }
	points := spilltest.Calls(get, func(err error) bool { return errors.Is(err, errStatus) })
	points.Retry.Do, points.Retry.Not = nil, "a server sends nothing"
	points.Hedge.Do, points.Hedge.Not = nil, "a server sends nothing"
	points.Stream.Do = func(ctx context.Context, _ *spilltest.Fuse, r handlerRig) error {
		return fetch(ctx, r.base, io.NopCloser(strings.NewReader(strings.Repeat("x", 1<<16))))
	}
	points.Late = map[string]string{
		"(*Server).dispatch": "waiters are let in by a goroutine of the ingress.Server, which tries again",
		"(*Server).sample":   "it is called where connections are accepted, which is before there is a request",
	}
	spilltest.TestPanics(t, func(t *testing.T, f *spilltest.Fuse) handlerRig {
		named := func(callback string) func(*http.Request) string {
			return func(*http.Request) string { f.Burn(callback); return "name" }
		}
		gates := must(ingress.New(f.Ingress(ingress.Config{})))
		h := must(NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { respond(f, w, r) }), HandlerConfig{
			Ingress: gates, Route: named("Route"), Identity: named("Identity"),
			Classify: func(*http.Request) spillway.Call { f.Burn("Classify"); return spillway.Call{} },
			Exempt:   func(*http.Request) bool { f.Burn("Exempt of requests"); return false },
		}))
		h.looks.Store(lookOn)
		return handlerRig{openWith(t, protocol, h, early, func(s *http.Server) {
			inner := s.Handler
			s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if f.Try(func() error { inner.ServeHTTP(w, r); return nil }) != nil {
					panic(http.ErrAbortHandler)
				}
			})
		}), h}
	}, points)
}

// respond does the work of a request, reads it and answers in parts.
func respond(f *spilltest.Fuse, w http.ResponseWriter, r *http.Request) {
	if f.Work(r.Context()) != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	part := make([]byte, 1<<14)
	for {
		n, err := r.Body.Read(part)
		f.Burn("Read")
		if _, e := w.Write(part[:max(n, 1)]); e != nil || err != nil {
			break
		}
		f.Burn("Write")
		_ = http.NewResponseController(w).Flush()
		f.Burn("Flush")
	}
}
