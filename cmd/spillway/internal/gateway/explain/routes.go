package explain

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
)

// RouteFacts says whether a route matches. Routes after the first match are not checked.
type RouteFacts struct {
	Route   string `json:"route"`
	Matches bool   `json:"matches"`
	Why     string `json:"why"`
}

// routes explains for each route, up to the first match, why it matches or not.
func (e *explaining) routes(r *http.Request) (all []RouteFacts) {
	path, host, next := routes.Path(r), routes.Host(r), 0
	for i := range e.config.Routes {
		c := &e.config.Routes[i]
		f := RouteFacts{Route: fmt.Sprintf("routes[%d]", i)}
		if !routes.Serves(e.listener, c) {
			f.Why = "belongs to other listeners: " + strings.Join(c.Listeners, ", ")
			all = append(all, f)
			continue
		}
		x := e.rehearsal.Routes().All()[next]
		next++
		if f.Matches = x == e.route; f.Matches {
			f.Why = wants(c)
			return append(all, f)
		}
		f.Why = missed(c, x.Miss(r, path, host), r, path, host)
		all = append(all, f)
	}
	return all
}

// wants lists the conditions of a route.
func wants(c *config.Route) string {
	var all []string
	for _, w := range []struct{ field, value string }{
		{"listeners", strings.Join(c.Listeners, ", ")}, {"host", c.Host}, {"path", c.Path}, {"methods", strings.Join(c.Methods, ", ")},
	} {
		if w.value != "" {
			all = append(all, w.field+" "+w.value)
		}
	}
	for _, name := range sortedKeys(c.Headers) {
		all = append(all, "headers "+name)
	}
	if len(all) == 0 {
		return "matches all requests"
	}
	return "all conditions match: " + strings.Join(all, "; ")
}

// ambiguous is why a route is not used that one of the readings of a path matches.
const ambiguous = "the path is ambiguous: some servers would read it as one of this route; the request is rejected with 400"

// missed describes the condition of a route that a request does not meet. It does not show
// values of headers, which may be secret.
func missed(c *config.Route, field string, r *http.Request, path, host string) string {
	switch field {
	case "":
		return ambiguous
	case "path":
		if c.Exact {
			return fmt.Sprintf("path %.100q is not %s", path, c.Path)
		}
		return fmt.Sprintf("path %.100q does not begin with %s", path, c.Path)
	case "host":
		return fmt.Sprintf("host %.100q is not %s", host, c.Host)
	case "methods":
		return fmt.Sprintf("method %.20q is not one of %s", r.Method, strings.Join(c.Methods, ", "))
	default:
		name := strings.TrimPrefix(field, "headers.")
		if len(r.Header.Values(name)) == 0 {
			return "the request has no header " + name
		}
		return "header " + name + " has another value"
	}
}
