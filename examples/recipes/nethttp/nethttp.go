// Package nethttp protects a server with an [http.ServeMux].
package nethttp

import (
	"net/http"

	"github.com/seed90641741/spillway/spillhttp"
)

// New returns a protected server with one route. Routes have limits of their own, by pattern.
func New(c spillhttp.HandlerConfig, users http.HandlerFunc) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", users)
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	c.HealthPaths = []string{"/healthz"}
	return spillhttp.NewHandler(mux, c)
}
