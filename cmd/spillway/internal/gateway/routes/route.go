package routes

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/claims"
)

// A Route is where some requests of a listener go.
type Route struct {
	Config   *config.Route
	Index    int    // in its [Table]
	Name     string // of it, in calls, metrics, logs and pages
	LimitKey string // what its requests wait for
	Class    spillway.Criticality
	Header   string // of the customer, in canonical form; empty: none names it
	Named    bool   // the header of the customer is believed

	match []header
	exact bool // the path is all of it
}

// header is one that a request must have; * is any value.
type header struct{ name, value, field string }

func newRoute(l *config.Listener, c *config.Route) *Route {
	r := &Route{Config: c, Name: c.Name(), LimitKey: c.LimitKey(), Header: http.CanonicalHeaderKey(c.Customer.Header)}
	r.exact = c.Exact || c.Exempt && !c.Prefix
	r.Named = !c.Customer.Identity && r.Header != "" && (c.Customer.Trusted || l.Boundary == "internal")
	r.Class, _ = c.Criticality.Criticality() // Check has seen that it is one, or empty
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		r.match = append(r.match, header{http.CanonicalHeaderKey(name), c.Headers[name], "headers." + name})
	}
	return r
}

// Miss returns the first field of the route that a request is not like, with a reading of its path
// and the host of [Host]; "" if the route is meant.
func (x *Route) Miss(r *http.Request, path, host string) (field string) {
	c := x.Config
	switch {
	case !strings.HasPrefix(path, c.Path), x.exact && path != c.Path, c.Exempt && !plain(RawPath(r)):
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

// Host returns the host that a request names, without a port.
func Host(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	switch {
	case err != nil:
		return r.Host
	case strings.Contains(host, ":"):
		return "[" + host + "]" // an address of IPv6, as it is without a port
	}
	return host
}

// MaxCustomer is the longest name of a customer; longer names are ignored.
const MaxCustomer = 256

// Customer returns on whose behalf a request is made. At an edge a header is believed only
// where the configuration says so, and where a certificate is to say it nothing else does.
func (x *Route) Customer(r *http.Request) (name string) {
	switch {
	case x.Config.Customer.Identity:
		if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
			name = claims.Identity(r.TLS.VerifiedChains[0][0])
		}
	case x.Named:
		if values := r.Header[x.Header]; len(values) == 1 {
			name = values[0]
		}
	}
	if len(name) > MaxCustomer {
		return ""
	}
	return name
}

// defaultUpgrades are the protocols that a connection may be upgraded to where a route
// does not say.
var defaultUpgrades = []string{"websocket"}

// upgradable reports whether all protocols that a request asks for are allowed. An exempt
// request stays what it is.
func (x *Route) upgradable(r *http.Request) bool {
	allowed := x.Config.Upgrades
	if len(allowed) == 0 {
		allowed = defaultUpgrades
	}
	for _, list := range r.Header["Upgrade"] {
		for protocol := range strings.SplitSeq(list, ",") {
			protocol = strings.TrimSpace(protocol)
			if !slices.ContainsFunc(allowed, func(s string) bool { return strings.EqualFold(s, protocol) }) {
				return false
			}
		}
	}
	return !x.Config.Exempt
}

// Upgrade takes out of a request what would make another protocol of its connection,
// unless its route allows it. RFC 9110, section 7.8, lets a server ignore it.
func (x *Route) Upgrade(r *http.Request) {
	if r.Header["Upgrade"] == nil || x.upgradable(r) {
		return
	}
	delete(r.Header, "Upgrade")
	delete(r.Header, "Http2-Settings")
}
