// Package gorilla protects a server with the router gorilla/mux.
package gorilla

import (
	"net/http"

	"github.com/gorilla/mux"

	"github.com/seed90641741/spillway/spillhttp"
)

// Protect puts the server policies in front of a router. Each route has a separate limit: the key asks the router.
func Protect(r *mux.Router, c spillhttp.HandlerConfig) (*spillhttp.Handler, error) {
	c.Route = func(req *http.Request) string {
		var match mux.RouteMatch
		if !r.Match(req, &match) || match.Route == nil {
			return ""
		}
		template, _ := match.Route.GetPathTemplate() // a route without a path has no key
		return template
	}
	return spillhttp.NewHandler(r, c)
}
