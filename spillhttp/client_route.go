package spillhttp

import (
	"net/http"
	"strings"

	"github.com/seed90641741/spillway/egress"
)

// What of a path makes a route.
const (
	routeSegments = 4  // the first so many segments,
	routeSegment  = 32 // of which a longer one is no name,
	routeVersion  = 3  // and a shorter one, such as v1, is
)

// DefaultRoute returns the method of a request and the first four segments of its path.
// A segment with a digit, with an escape, or of more than 32 bytes names a single object,
// and is "*": all of "GET /orders/17/items" is "GET /orders/*/items". A version, such as v1,
// stays: it has at most three bytes, and not only digits.
func DefaultRoute(r *http.Request) string {
	var b strings.Builder
	b.WriteString(r.Method)
	b.WriteByte(' ')
	rest := strings.TrimPrefix(r.URL.Path, "/")
	for n, more := 0, true; more && n < routeSegments; n++ {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		b.WriteByte('/')
		if namesObject(segment) {
			segment = "*"
		}
		b.WriteString(segment)
	}
	return b.String()
}

// namesObject reports whether a segment of a path names a single object.
func namesObject(segment string) bool {
	const digits = "0123456789"
	switch {
	case len(segment) > routeSegment || strings.Contains(segment, "%"):
		return true
	case !strings.ContainsAny(segment, digits):
		return false
	default:
		return len(segment) > routeVersion || strings.Trim(segment, digits) == ""
	}
}

// routeOf returns what names the route of req when it is asked to. It allocates nothing
// for a default route.
func (t *Transport) routeOf(req *http.Request) egress.Router {
	if t.config.Route != nil {
		return &namedRoute{t.config.Route, req}
	}
	return (*defaultRoute)(req)
}

type defaultRoute http.Request

func (r *defaultRoute) Route() string { return DefaultRoute((*http.Request)(r)) }

type namedRoute struct {
	name    func(*http.Request) string
	request *http.Request
}

func (r *namedRoute) Route() string { return r.name(r.request) }
