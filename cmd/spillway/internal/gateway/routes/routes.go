// Package routes finds the route of a request: the first of its listener whose host, path,
// method and headers are taken from the request.
//
// The upstream gets the path as the client has written it ([Send]). Servers read some paths in
// different ways, so that a client could choose a route for what another route is meant for. A
// request is rejected if two readings of its path meet different routes ([Table.Admits]), and
// what is exempt must have a path that all servers read in the same way.
package routes

import (
	"errors"
	"net/http"
	"slices"

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
		if !Serves(l, &c.Routes[i]) {
			continue
		}
		r := newRoute(l, &c.Routes[i])
		r.Index = len(t.routes)
		t.routes = append(t.routes, r)
		t.paths = t.paths || r.Config.Path != ""
		if r.Header != "" && r.Config.Customer.Trusted {
			t.trusted[r.Header] = true
		}
	}
	return t
}

// Serves reports whether a route is one of the listener's.
func Serves(l *config.Listener, r *config.Route) bool {
	return len(r.Listeners) == 0 || slices.Contains(r.Listeners, l.Name)
}

// All returns the routes, in their order.
func (t *Table) All() []*Route { return t.routes }

// Trusted reports whether the configuration says that a header names the customer. The name
// is in canonical form.
func (t *Table) Trusted(name string) bool { return t.trusted[name] }

// ErrPath is why a request is rejected on any route.
var ErrPath = errors.New("servers may read the path as that of another route")

// Admits returns why a request is rejected on any route, or nil.
func (t *Table) Admits(r *http.Request) error {
	if _, ok := t.find(r); !ok || !sendable(r) {
		return ErrPath
	}
	return nil
}

// Match returns the first route that is meant by a request, nil if absent, or if it is another
// one for another reading of the path.
func (t *Table) Match(r *http.Request) *Route {
	x, _ := t.find(r)
	return x
}

// find returns the route of a request, and reports whether it is the same one however the path is
// read.
func (t *Table) find(r *http.Request) (x *Route, ok bool) {
	raw := RawPath(r)
	if !t.paths || plain(raw) {
		return t.first(r, r.URL.Path), true
	}
	if len(raw) > maxOdd {
		return nil, false
	}
	x = t.first(r, r.URL.Path)
	for path := range readings(raw) {
		if t.first(r, path) != x {
			return nil, false
		}
	}
	return x, true
}

// first returns the first route that is meant by a request with a path.
func (t *Table) first(r *http.Request, path string) *Route {
	host := ""
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
