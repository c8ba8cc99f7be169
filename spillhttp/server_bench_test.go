package spillhttp

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seed90641741/spillway/ingress"
)

func BenchmarkHandler(b *testing.B) {
	edge := mustHandler(b, bare, ingress.Config{}, HandlerConfig{})
	inside := mustHandler(b, bare, internal, HandlerConfig{})
	rejecting := mustHandler(b, bare, ingress.Config{Quota: none()}, HandlerConfig{})
	for _, bench := range []struct {
		name    string
		handler http.Handler
		request *http.Request
	}{
		{"bare", bare, incoming(b)},
		{"protected", edge, incoming(b)},
		{"labelled", inside, incoming(b, headerCriticality, "CRITICAL_PLUS")},
		{"deadline", inside, incoming(b, headerCriticality, "CRITICAL_PLUS", headerDeadline, "5000")},
		{"exempt", edge, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/healthz", nil)},
		{"over quota", rejecting, incoming(b)},
		{"overloaded", mustHandler(b, bare, swamped, HandlerConfig{}), incoming(b, headerCriticality, "SHEDDABLE")},
	} {
		b.Run(bench.name, func(b *testing.B) {
			w := nowhere{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				bench.handler.ServeHTTP(w, bench.request)
			}
		})
	}
}

// BenchmarkHandlerParallel shows what goroutines that share a Handler cost each other.
func BenchmarkHandlerParallel(b *testing.B) {
	h := mustHandler(b, bare, internal, HandlerConfig{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		w, r := nowhere{http.Header{}}, incoming(b, headerCriticality, "CRITICAL_PLUS", headerDeadline, "5000")
		for pb.Next() {
			h.ServeHTTP(w, r)
		}
	})
}

// BenchmarkHandlerGoroutine serves each request in its own goroutine, as HTTP/2 does: what a
// Handler needs of its stack costs time, too.
func BenchmarkHandlerGoroutine(b *testing.B) {
	inside := mustHandler(b, bare, internal, HandlerConfig{})
	rejecting := mustHandler(b, bare, swamped, HandlerConfig{})
	for _, bench := range []struct {
		name    string
		handler http.Handler
		request *http.Request
	}{
		{"bare", bare, incoming(b)},
		{"deadline", inside, incoming(b, headerCriticality, "CRITICAL_PLUS", headerDeadline, "5000")},
		{"overloaded", rejecting, incoming(b, headerCriticality, "SHEDDABLE")},
	} {
		b.Run(bench.name, func(b *testing.B) {
			bench.request.ProtoMajor = 2
			w := nowhere{http.Header{}}
			ended := make(chan struct{})
			b.ReportAllocs()
			for b.Loop() {
				go func() {
					bench.handler.ServeHTTP(w, bench.request)
					ended <- struct{}{}
				}()
				<-ended
			}
		})
	}
}
