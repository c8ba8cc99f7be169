// Package plain protects a handler that has no router.
package plain

import (
	"net/http"
	"strings"

	"github.com/seed90641741/spillway/spillhttp"
)

// New returns a protected server that looks at the path by itself. The key names the route:
// it must not depend on what a client can choose freely.
func New(c spillhttp.HandlerConfig, users http.HandlerFunc) (http.Handler, error) {
	c.HealthPaths = []string{"/healthz"}
	c.Route = func(r *http.Request) string {
		if strings.HasPrefix(r.URL.Path, "/users/") {
			return "/users/"
		}
		return ""
	}
	return spillhttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/users/"):
			users(w, r)
		case r.URL.Path == "/healthz":
		default:
			http.NotFound(w, r)
		}
	}), c)
}
