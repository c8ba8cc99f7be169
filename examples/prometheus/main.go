// Prometheus is a protected server with its metrics at /metrics.
//
//	go run ./examples/prometheus
//	curl http://127.0.0.1:8080/carts/7
//	curl http://127.0.0.1:8080/metrics
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillprom"
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

// newHandler returns the server. Spillway and its metrics need
// only the lines between the marks.
func newHandler(rate ratelimit.Config) (http.Handler, error) {
	mux := http.NewServeMux()
	// added
	metrics, err := spillprom.New(spillprom.Config{})
	if err != nil {
		return nil, err
	}
	server, err := ingress.New(ingress.Config{Observer: metrics, RateLimit: rate})
	if err != nil {
		return nil, err
	}
	metrics.AddServer("main", server)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	protect, err := spillhttp.Middleware(spillhttp.HandlerConfig{Ingress: server})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	// added
	mux.Handle("GET /carts/{id}", protect(http.HandlerFunc(cart)))
	return mux, err
}
