// Server has two classes of requests. It is the program of docs/start.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillhttp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ctx.Err() != nil {
			http.Error(w, "draining", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /checkout", answer("paid"))
	mux.HandleFunc("GET /report", answer("a report"))
	listener, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listening on ", listener.Addr())
	if err := serve(ctx, mux, listener); err != nil {
		log.Fatal(err)
	}
}

// serve serves until ctx ends, and then until the last request has ended.
func serve(ctx context.Context, mux *http.ServeMux, listener net.Listener) error {
	handler, err := spillhttp.NewHandler(mux, spillhttp.HandlerConfig{
		HealthPaths: []string{"/healthz", "/readyz"}, // never rejected
		Classify:    classify,
	})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- handler.Serve(server, listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done(): // after SIGTERM
	}
	time.Sleep(5 * time.Second) // load balancers see /readyz fail
	end, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(end), handler.Close())
}

// classify says how important a request is. Both routes wait for the same pool, so their calls have the same Key.
func classify(r *http.Request) spillway.Call {
	if r.URL.Path == "/report" {
		return spillway.Call{Criticality: spillway.Sheddable, Key: "db"}
	}
	return spillway.Call{Criticality: spillway.Critical, Key: "db"}
}

var pool = make(chan struct{}, 8) // in place of a database

func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		pool <- struct{}{}
		<-time.After(20 * time.Millisecond)
		<-pool
		fmt.Fprintln(w, text, spillway.CriticalityFrom(r.Context()))
	}
}
