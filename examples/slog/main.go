// Slog is a protected server that logs why it rejects requests.
//
//	go run ./examples/slog
//	curl -H 'X-Request-ID: 17' http://127.0.0.1:8080/carts/7
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillslog"
)

func main() {
	handler, _, err := newHandler(slog.New(slog.NewTextHandler(os.Stderr, nil)), ratelimit.Config{Rate: 100})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func cart(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "a cart") }

type requestID struct{}

// withID is the middleware that gives requests their id.
func withID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestID{}, r.Header.Get("X-Request-ID"))))
	})
}

// newHandler returns the server and its log. Spillway and its log
// need only the lines between the marks.
func newHandler(logger *slog.Logger, rate ratelimit.Config) (http.Handler, *spillslog.Observer, error) {
	mux := http.NewServeMux()
	// added
	logs, err := spillslog.New(spillslog.Config{Logger: logger, RequestID: func(ctx context.Context) string {
		id, _ := ctx.Value(requestID{}).(string)
		return id
	}})
	if err != nil {
		return nil, nil, err
	}
	server, err := ingress.New(ingress.Config{Observer: logs, RateLimit: rate})
	if err != nil {
		return nil, nil, err
	}
	protect, err := spillhttp.Middleware(spillhttp.HandlerConfig{Ingress: server})
	// added
	mux.Handle("GET /carts/{id}", protect(http.HandlerFunc(cart)))
	return withID(mux), logs, err
}
