// Package chi protects a server with the router chi.
package chi

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/seed90641741/spillway/spillhttp"
)

// New returns a protected server with one route. Middleware of chi runs before chi has found
// the route, so the key asks the router.
func New(c spillhttp.HandlerConfig, users http.HandlerFunc) (http.Handler, error) {
	r := chi.NewRouter()
	c.HealthPaths = []string{"/healthz"}
	c.Key = func(req *http.Request) string { return r.Find(chi.NewRouteContext(), req.Method, req.URL.Path) }
	protect, err := spillhttp.Middleware(c)
	if err != nil {
		return nil, err
	}
	r.Use(protect)
	r.Get("/users/{id}", users)
	r.Get("/healthz", func(http.ResponseWriter, *http.Request) {})
	return r, nil
}
