package spillhttp

import (
	"hash/maphash"
	"net/http"
	"strings"

	"github.com/seed90641741/spillway/egress"
)

// These say which parts of a path belong to its route.
const (
	routeSegments = 4  // number of segments, from the first on
	routeSegment  = 32 // bytes of the longest segment that is a name
	routeVersion  = 3  // bytes of the longest version, such as v1
)

// DefaultRoute returns the method of a request and the first four segments of its path. A segment
// that has a digit, has an escape, or is longer than 32 bytes names a single object, and becomes
// "*": the route of "GET /orders/17/items" is "GET /orders/*/items". A version, such as v1, stays:
// it has at most three bytes, and not only digits.
func DefaultRoute(r *http.Request) string {
	var b strings.Builder
	b.Grow(len(r.Method) + len(r.URL.Path) + 2)
	b.WriteString(r.Method)
	b.WriteByte(' ')
	rest, more := strings.TrimPrefix(r.URL.Path, "/"), true
	for n := 0; more && n < routeSegments; n++ {
		var segment string
		segment, rest, more = nextSegment(rest)
		b.WriteByte('/')
		b.WriteString(segment)
	}
	return b.String()
}

// RouteHash returns a hash of the route that [DefaultRoute] returns. It allocates nothing.
func RouteHash(r *http.Request, seed maphash.Seed) uint64 {
	h := maphash.String(seed, r.Method)
	rest, more := strings.TrimPrefix(r.URL.Path, "/"), true
	for n := 0; more && n < routeSegments; n++ {
		var segment string
		segment, rest, more = nextSegment(rest)
		h = h*hashFactor + maphash.String(seed, segment)
	}
	return h
}

// hashFactor is odd, so that the order of segments changes the hash.
const hashFactor = 0x9e3779b97f4a7c15

// nextSegment cuts the first segment off a path, and returns it as it is in a route.
func nextSegment(path string) (segment, rest string, more bool) {
	segment, rest, more = strings.Cut(path, "/")
	if namesObject(segment) {
		segment = "*"
	}
	return segment, rest, more
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

// routeOf returns an object that computes the route of req when it is needed. It allocates nothing
// for a default route.
func (t *Transport) routeOf(req *http.Request) egress.Router {
	if t.config.Route != nil {
		return &namedRoute{t.config.Route, req}
	}
	return (*defaultRoute)(req)
}

type defaultRoute http.Request

func (r *defaultRoute) Route() string { return DefaultRoute((*http.Request)(r)) }

// RouteHash implements [throttle.Hasher].
func (r *defaultRoute) RouteHash(seed maphash.Seed) uint64 {
	return RouteHash((*http.Request)(r), seed)
}

type namedRoute struct {
	name    func(*http.Request) string
	request *http.Request
}

func (r *namedRoute) Route() string { return r.name(r.request) }
