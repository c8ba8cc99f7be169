package spillhttp

import (
	"net/http"
	"strings"

	"github.com/seed90641741/spillway/egress"
)

// What of a path makes a route.
const (
	routeSegments = 4  // the first so many segments,
	routeSegment  = 32 // of which a longer one is no name
)

// DefaultRoute returns the method of a request and the first four segments of its path.
// A segment with a digit, with an escape, or of more than 32 bytes names a single object,
// and is "*": all of "GET /orders/17/items" is "GET /orders/*/items".
func DefaultRoute(r *http.Request) string {
	var b strings.Builder
	b.WriteString(r.Method)
	b.WriteByte(' ')
	rest := strings.TrimPrefix(r.URL.Path, "/")
	for n, more := 0, true; more && n < routeSegments; n++ {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		b.WriteByte('/')
		if len(segment) > routeSegment || strings.ContainsAny(segment, "0123456789%") {
			segment = "*"
		}
		b.WriteString(segment)
	}
	return b.String()
}

// routeOf returns what names the route of req when it is asked to. It allocates nothing
// for a default route.
func (t *Transport) routeOf(req *http.Request) egress.Router {
	if t.route != nil {
		return &namedRoute{t.route, req}
	}
	return (*defaultRoute)(req)
}

type defaultRoute http.Request

// Route implements [egress.Router].
func (r *defaultRoute) Route() string { return DefaultRoute((*http.Request)(r)) }

type namedRoute struct {
	name    func(*http.Request) string
	request *http.Request
}

// Route implements [egress.Router].
func (r *namedRoute) Route() string { return r.name(r.request) }
