package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

func (k *checker) route(at string, r *Route) {
	k.references(at, r)
	if r.Cluster == "" && len(k.config.Clusters) > 1 {
		k.failf(at+".cluster", "is missing, must be one of the %d clusters", len(k.config.Clusters))
	}
	if r.Path != "" && !strings.HasPrefix(r.Path, "/") {
		k.failf(at+".path", "is %.64q, must begin with /", r.Path)
	}
	if r.Exact && r.Path == "" {
		k.failf(at+".exact", "is true, but there is no path")
	}
	if strings.Contains(strings.TrimPrefix(r.Host, "*."), "*") || strings.ContainsAny(r.Host, ":/ ") && !strings.HasPrefix(r.Host, "[") {
		k.failf(at+".host", "is %.64q, must be a name, such as api.example.com or *.example.com", r.Host)
	}
	k.each(at+".methods", r.Methods, isToken, "a method, such as GET")
	for name := range r.Headers {
		if !isToken(name) {
			k.failf(at+".headers", "has %.64q, which is no name of a header", name)
		}
	}
	k.customer(at+".customer", r)
	k.exempt(at, r)
	k.each(at+".upgrades", r.Upgrades, isUpgrade, "a protocol such as websocket, and not h2c")
}

// references checks the names of listeners and of a cluster in a route. Names of which some are missing or could not
// be read say nothing about others.
func (k *checker) references(at string, r *Route) {
	for i, name := range r.Listeners {
		if _, known := k.named[name]; !known && k.named != nil {
			k.failf(fmt.Sprintf("%s.listeners[%d]", at, i), "is %.64q, which no listener is called", name)
		}
	}
	if _, known := k.clusters[r.Cluster]; r.Cluster != "" && !known && k.clusters != nil {
		k.failf(at+".cluster", "is %.64q, which no cluster is called", r.Cluster)
	}
}

func isUpgrade(protocol string) bool {
	name, version, _ := strings.Cut(protocol, "/")
	return isToken(name) && (version == "" || isToken(version)) && !strings.EqualFold(name, "h2c")
}

// customer reports a source of the customer's name that any client could forge.
func (k *checker) customer(at string, r *Route) {
	c := r.Customer
	switch {
	case c.Header != "" && !isToken(c.Header):
		k.failf(at+".header", "is %.64q, which is no name of a header", c.Header)
	case c.Header != "" && c.Identity:
		k.failf(at+".header", "is given together with identity, must be one of them: who has no certificate has no name")
	case c.Header != "" && !c.Trusted && k.atEdges(r):
		k.failf(at+".trusted_header", "is missing: at an edge any client can send %.64q; "+
			"set it to true if something in front of the proxy sets or removes that header, or use identity", c.Header)
	case c.Trusted && c.Header == "":
		k.failf(at+".trusted_header", "is true, but there is no header")
	}
}

func (k *checker) atEdges(r *Route) bool {
	return !slices.ContainsFunc(k.config.Listeners, func(l Listener) bool {
		return l.Boundary == "internal" && (len(r.Listeners) == 0 || slices.Contains(r.Listeners, l.Defaulted().Name))
	})
}

// exempt reports exempt paths that other requests could be made to match.
func (k *checker) exempt(at string, r *Route) {
	switch {
	case r.Prefix && !r.Exempt:
		k.failf(at+".prefix", "is true, but exempt is not; all other routes match prefixes unless exact is true")
	case r.Prefix && r.Exact:
		k.failf(at+".prefix", "is true, and so is exact; must be one of them")
	case r.Exempt && r.Path == "":
		k.failf(at+".exempt", "is true, but there is no path; set the path of the health check")
	case r.Prefix && !strings.HasSuffix(r.Path, "/"):
		k.failf(at+".path", "is %.64q, must end with / where prefix is true", r.Path)
	case r.Exempt && (strings.ContainsAny(r.Path, `;\%`) || path.Clean(r.Path) != strings.TrimSuffix(r.Path, "/") && r.Path != "/"):
		k.failf(at+".path", "is %.64q, must have none of ; \\ %% and no dot or empty segments where exempt is true", r.Path)
	}
}

// isToken reports whether s may be a method or the name of a header: RFC 9110,
// section 5.6.2.
func isToken(s string) bool { return httpguts.ValidHeaderFieldName(s) }
