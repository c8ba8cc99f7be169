package proxy

import (
	"maps"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/config"
	"github.com/seed90641741/spillway/internal/claims"
)

// A route is where some requests of a listener go.
type route struct {
	config *config.Route
	gate   *gate
	class  spillway.Criticality
	header string // of the customer, in canonical form
	match  []header
}

// header is one that a request must have; * is any value.
type header struct{ name, value, field string }

func newRoute(c *config.Route, g *gate) *route {
	r := &route{config: c, gate: g, header: http.CanonicalHeaderKey(c.Customer.Header)}
	r.class, _ = c.Criticality.Criticality() // Check has seen that it is one, or empty
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		r.match = append(r.match, header{http.CanonicalHeaderKey(name), c.Headers[name], "headers." + name})
	}
	return r
}

// matches reports whether a request, whose path and host are given as they count, is
// meant.
func (x *route) matches(r *http.Request, path, host string) bool {
	return x.miss(r, path, host) == ""
}

// miss returns the first field of the route that is not as a request is; none if it
// is meant.
func (x *route) miss(r *http.Request, path, host string) (field string) {
	c := x.config
	switch {
	case !strings.HasPrefix(path, c.Path) || c.Exact && path != c.Path:
		return "path"
	case c.Host != "" && !sameHost(host, c.Host):
		return "host"
	case len(c.Methods) > 0 && !slices.Contains(c.Methods, r.Method):
		return "methods"
	}
	for _, h := range x.match {
		values := r.Header[h.name]
		if len(values) == 0 || h.value != "*" && !slices.Contains(values, h.value) {
			return h.field
		}
	}
	return ""
}

// sameHost reports whether a name is the one that is meant, or below it.
func sameHost(host, want string) bool {
	if below, ok := strings.CutPrefix(want, "*"); ok {
		return len(host) > len(below) && strings.EqualFold(host[len(host)-len(below):], below)
	}
	return strings.EqualFold(host, want)
}

// hostOf returns the host that a request names, without a port.
func hostOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	switch {
	case err != nil:
		return r.Host
	case strings.Contains(host, ":"):
		return "[" + host + "]" // an address of IPv6, as it is without a port
	}
	return host
}

// pathOf returns the path of a request without detours, which would lead around a
// route. It is used for routes only, and sent on as it came.
func pathOf(r *http.Request) string {
	p := r.URL.Path
	if !strings.Contains(p, "//") && !strings.Contains(p, "/.") {
		return p
	}
	straight := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && straight != "/" {
		straight += "/"
	}
	return straight
}

// maxCustomer is the longest name of a customer; longer ones are nobody's.
const maxCustomer = 256

// customer returns on whose behalf a request is made.
func (x *route) customer(r *http.Request) string {
	c := x.config.Customer
	name := ""
	if c.Identity && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		name = claims.Identity(r.TLS.VerifiedChains[0][0])
	}
	if name == "" && x.header != "" {
		if values := r.Header[x.header]; len(values) > 0 {
			name = values[0]
		}
	}
	if len(name) > maxCustomer {
		return ""
	}
	return name
}
