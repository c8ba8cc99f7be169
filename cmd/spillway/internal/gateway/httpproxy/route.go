package httpproxy

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

// A route is where some requests of a listener go.
type route struct {
	config *config.Route
	gate   *gate
	key    string // of the limit on its requests at work; see limitKey
	class  spillway.Criticality
	header string // of the customer, in canonical form
	match  []header
	bounds *bounds
	exact  bool // the path is all of it
	named  bool // the header of the customer is believed
}

// header is one that a request must have; * is any value.
type header struct{ name, value, field string }

func newRoute(l *config.Listener, c *config.Route, g *gate) *route {
	r := &route{config: c, gate: g, key: c.LimitKey(), header: http.CanonicalHeaderKey(c.Customer.Header), bounds: boundsOf(l, c)}
	r.exact = c.Exact || c.Exempt && !c.Prefix
	r.named = !c.Customer.Identity && r.header != "" && (c.Customer.Trusted || l.Boundary == "internal")
	r.class, _ = c.Criticality.Criticality() // Check has seen that it is one, or empty
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		r.match = append(r.match, header{http.CanonicalHeaderKey(name), c.Headers[name], "headers." + name})
	}
	return r
}

// clusterOf returns the cluster of the key of a call.
func clusterOf(key string) string {
	cluster, _, _ := strings.Cut(key, config.KeySeparator)
	return cluster
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
	case !strings.HasPrefix(path, c.Path), x.exact && path != c.Path, c.Exempt && !plain(r.URL):
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

// maxCustomer is the longest name of a customer; longer ones are nobody's.
const maxCustomer = 256

// customer returns on whose behalf a request is made. At an edge a header is believed only
// where the configuration says so, and where a certificate is to say it nothing else does.
func (x *route) customer(r *http.Request) (name string) {
	switch {
	case x.config.Customer.Identity:
		if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
			name = claims.Identity(r.TLS.VerifiedChains[0][0])
		}
	case x.named:
		if values := r.Header[x.header]; len(values) == 1 {
			name = values[0]
		}
	}
	if len(name) > maxCustomer {
		return ""
	}
	return name
}

// defaultUpgrades are the protocols that a connection may be upgraded to where a route
// does not say.
var defaultUpgrades = []string{"websocket"}

// upgradable reports whether all protocols that a request wants are allowed. An exempt
// request stays what it is.
func (x *route) upgradable(r *http.Request) bool {
	allowed := x.config.Upgrades
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
	return !x.config.Exempt
}

// upgrade takes out of a request what would make another protocol of its connection,
// unless its route allows it. RFC 9110, section 7.8, lets a server ignore it.
func (x *route) upgrade(r *http.Request) {
	if r.Header["Upgrade"] == nil || x.upgradable(r) {
		return
	}
	delete(r.Header, "Upgrade")
	delete(r.Header, "Http2-Settings")
}
