// Server has two classes of requests. It is the program of docs/start.md.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillhttp"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /checkout", answer("paid"))
	mux.HandleFunc("GET /report", answer("a report"))

	handler, err := spillhttp.NewHandler(mux, spillhttp.HandlerConfig{
		HealthPaths: []string{"/healthz"}, // never rejected
		Classify:    classify,
	})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listening on ", listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(handler.Serve(server, listener))
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
