// Package routes finds the route of a request: the first of its listener whose host, path,
// method and headers are taken from the request.
//
// Routes match the path that the upstream gets. A path with dot segments or empty segments is
// normalized once ([Table.Straighten]), before routes are matched, and is sent on in that
// form. What is exempt must have a path that all servers read in the same way.
package routes

import (
	"net/http"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// A Table has the routes of one listener, in their order. It is not changed, so that many may
// read it at once.
type Table struct {
	routes  []*Route
	paths   bool            // routes go by them
	trusted map[string]bool // headers that name the customer
}

// New returns the routes of l.
func New(c *config.Config, l *config.Listener) *Table {
	t := &Table{trusted: make(map[string]bool)}
	for i := range c.Routes {
		if r := &c.Routes[i]; Serves(l, r) {
			t.add(l, r)
		}
	}
	return t
}

// Serves reports whether a route is one of the listener's.
func Serves(l *config.Listener, r *config.Route) bool {
	return len(r.Listeners) == 0 || slices.Contains(r.Listeners, l.Name)
}

func (t *Table) add(l *config.Listener, c *config.Route) {
	r := newRoute(l, c)
	r.Index = len(t.routes)
	t.routes = append(t.routes, r)
	t.paths = t.paths || c.Path != ""
	if r.Header != "" && c.Customer.Trusted {
		t.trusted[r.Header] = true
	}
}

// All returns the routes, in their order.
func (t *Table) All() []*Route { return t.routes }

// Trusted reports whether the configuration says that a header names the customer. The name
// is in canonical form.
func (t *Table) Trusted(name string) bool { return t.trusted[name] }

// Match returns the first route that is meant by a request, nil if absent.
func (t *Table) Match(r *http.Request) *Route {
	if len(t.routes) == 0 {
		return nil
	}
	path, host := Path(r), ""
	for _, x := range t.routes {
		if x.Config.Host != "" && host == "" {
			host = Host(r)
		}
		if x.Miss(r, path, host) == "" {
			return x
		}
	}
	return nil
}

// Straighten returns a request with a normalized path, if routes match by path.
func (t *Table) Straighten(r *http.Request) *http.Request {
	if !t.paths {
		return r
	}
	return straighten(r)
}

// ClusterOf returns the cluster of a limit key.
func ClusterOf(limitKey string) string {
	cluster, _, _ := strings.Cut(limitKey, config.KeySeparator)
	return cluster
}
