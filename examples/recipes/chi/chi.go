// Package chi protects a server with the router chi.
package chi

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/seed90641741/spillway/spillhttp"
)

// Protect puts the server policies in front of a router. Each route has a separate limit: the key asks the router.
func Protect(r chi.Router, c spillhttp.HandlerConfig) (*spillhttp.Handler, error) {
	c.Route = func(req *http.Request) string { return r.Find(chi.NewRouteContext(), req.Method, req.URL.Path) }
	return spillhttp.NewHandler(r, c)
}
