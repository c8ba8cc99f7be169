package spillhttp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// instant is a base that answers at once and allocates nothing but the answer.
type instant struct{ body string }

func (b instant) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(b.body)), Request: req}, nil
}

func mustTransport(t testing.TB, c TransportConfig) *Transport {
	t.Helper()
	transport, err := NewTransport(c)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

func labelled(t testing.TB) *http.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(spillway.WithCriticality(t.Context(), spillway.Sheddable), time.Minute)
	t.Cleanup(cancel)
	return request(t, ctx)
}

func request(t testing.TB, ctx context.Context) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://backend.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer abc")
	return req
}

func roundTrip(t testing.TB, rt http.RoundTripper, req *http.Request) {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// once answers 503 to its first request.
type once struct {
	base http.RoundTripper
	done bool
}

func (o *once) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.base.RoundTrip(req)
	if !o.done {
		o.done, resp.StatusCode = true, http.StatusServiceUnavailable
	}
	return resp, err
}

func BenchmarkRoundTrip(b *testing.B) {
	base := instant{"hello"}
	protected := mustTransport(b, TransportConfig{Base: base})
	recovered := mustTransport(b, TransportConfig{Base: &once{base: base}})
	for range 1000 {
		roundTrip(b, recovered, request(b, b.Context()))
	}
	for _, bench := range []struct {
		name      string
		transport http.RoundTripper
		request   *http.Request
	}{
		{"bare", base, request(b, b.Context())},
		{"protected", protected, request(b, b.Context())},
		{"protected, after a failure", recovered, request(b, b.Context())},
		{"protected, with criticality and deadline", protected, labelled(b)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			req := bench.request
			b.ReportAllocs()
			for b.Loop() {
				roundTrip(b, bench.transport, req)
			}
		})
	}
}

// BenchmarkRoundTripParallel shows what goroutines that share a Transport cost each other.
func BenchmarkRoundTripParallel(b *testing.B) {
	protected := mustTransport(b, TransportConfig{Base: instant{"hello"}})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		req := labelled(b)
		for pb.Next() {
			roundTrip(b, protected, req)
		}
	})
}

// BenchmarkLoopback is BenchmarkRoundTrip against a real server, to see what it is worth.
func BenchmarkLoopback(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	for _, bench := range []struct {
		name      string
		transport http.RoundTripper
	}{
		{"bare", base},
		{"protected", mustTransport(b, TransportConfig{Base: base})},
	} {
		b.Run(bench.name, func(b *testing.B) {
			req := labelled(b)
			req.URL.Host = server.Listener.Addr().String()
			b.ReportAllocs()
			for b.Loop() {
				resp, err := bench.transport.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}
