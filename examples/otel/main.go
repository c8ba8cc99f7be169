// Otel is a protected server that reports to OpenTelemetry: to the global MeterProvider,
// and to the span of each request. A real program sets up the SDK and the instrumentation
// of its server before.
//
//	go run ./examples/otel
//	curl http://127.0.0.1:8080/carts/7
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillotel"
)

func main() {
	handler, err := newHandler(ratelimit.Config{Rate: 100})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func cart(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "a cart") }

// newHandler returns the server. Spillway and its telemetry need
// only the lines between the marks.
func newHandler(rate ratelimit.Config) (http.Handler, error) {
	mux := http.NewServeMux()
	// added
	observer, err := spillotel.New(spillotel.Config{})
	if err != nil {
		return nil, err
	}
	server, err := ingress.New(ingress.Config{Observer: observer, RateLimit: rate})
	if err != nil {
		return nil, err
	}
	observer.AddServer("main", server)
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, spillotel.Propagator{}))
	protect, err := spillhttp.Middleware(spillhttp.HandlerConfig{Ingress: server})
	// added
	mux.Handle("GET /carts/{id}", protect(http.HandlerFunc(cart)))
	return mux, err
}
