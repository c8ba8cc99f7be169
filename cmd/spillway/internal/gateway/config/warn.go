package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config/reach"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// Warnings returns what is allowed in a good configuration, and is probably not meant:
// routes that no request reaches, quotas without customers, what lets clients past the
// policies, and what has no effect.
func (c *Config) Warnings() strict.Errors {
	k := newChecker(c)
	for i := range c.Listeners {
		k.warnBoundary(fmt.Sprintf("listeners[%d]", i), &c.Listeners[i])
		k.warnRate(fmt.Sprintf("listeners[%d].connection_rate", i), &c.Listeners[i].ConnectionRate)
	}
	conditions := make([]reach.Route, len(c.Routes))
	for i := range c.Routes {
		r := &c.Routes[i]
		conditions[i] = reach.Route{Listeners: r.Listeners, Methods: r.Methods, Host: r.Host, Path: r.Path, Headers: r.Headers,
			Exact: r.Exact, Exempt: r.Exempt, Prefix: r.Prefix}
	}
	for i, coveredBy := range reach.Covered(conditions) {
		k.warnRoute(fmt.Sprintf("routes[%d]", i), &c.Routes[i], coveredBy)
	}
	for i := range c.Clusters {
		x := &c.Clusters[i]
		k.warnRate(fmt.Sprintf("clusters[%d].rate_limit", i), &x.RateLimit)
		if x.Quota != nil && !k.has(x.Name, (*Route).namesCustomer) {
			k.failf(fmt.Sprintf("clusters[%d].quota", i), "%s: no route to %s has customer.header or customer.identity", ofNobody(x.Quota), x.Name)
		}
	}
	for i := range c.Mongo {
		m := &c.Mongo[i]
		if m.Quota != nil && !slices.ContainsFunc(m.Classes, func(x MongoClass) bool { return x.Customer != "" }) {
			k.failf(fmt.Sprintf("mongo[%d].quota", i), "%s: none of classes has customer", ofNobody(m.Quota))
		}
	}
	k.warnUnused()
	k.warnItself()
	k.warnUnbounded()
	return k.errs
}

func (k *checker) warnRate(at string, r *RateLimit) {
	if r.Rate == 0 && !reflect.ValueOf(r).Elem().IsZero() {
		k.failf(at, "has no effect: rate is not given")
	}
}

func (k *checker) warnUnused() {
	c, used := k.config, make(map[string]bool)
	c.SharedQuotas(func(_ string, _ *Engine, q *Quota) { used[q.Engine] = true })
	for _, name := range slices.Sorted(maps.Keys(c.Quotas)) {
		if !used[name] {
			k.failf("quotas."+name, "has no effect: no quota has engine: %s", name)
		}
	}
	if c.XDS != nil && !slices.ContainsFunc(c.Clusters, func(x Cluster) bool { return x.XDS != nil }) {
		k.failf("xds", "has no effect: no cluster has xds")
	}
}

// ofNobody says what a quota does with requests that have no customer.
func ofNobody(q *Quota) string {
	if q.DefaultLimit == (Limit{}) && q.UnlistedTotal == (Limit{}) && q.Capacity == 0 {
		return "has no effect"
	}
	return "limits all requests together, as if one customer had sent them"
}

func (r *Route) namesCustomer() bool { return r.Customer.Header != "" || r.Customer.Identity }

func (k *checker) warnBoundary(at string, l *Listener) {
	switch {
	case l.Boundary != "internal":
	case l.TLS == nil || l.TLS.ClientCA == "":
		k.failf(at+".boundary", "is internal without tls.client_ca: every process in the networks of peers may claim any "+
			"attempt number, deadline and customer, and a criticality up to others")
	case l.TLS.Optional:
		k.failf(at+".tls.optional", "is true at an internal boundary: clients without a certificate may claim any "+
			"attempt number, deadline and customer, and a criticality up to others")
	}
}

func (k *checker) warnRoute(at string, r *Route, coveredBy int) {
	if r.Exempt && r.Prefix {
		k.failf(at+".prefix", "exempts all paths below %s: no rate limit, quota or shedding applies to them", r.Path)
	}
	if r.Timeout > 0 && k.idlesForever(r) {
		k.failf(at+".timeout", "ends neither upgraded connections nor streams of events, and stream_idle_timeout is no limit: they may be idle for ever")
	}
	for j, method := range r.Methods {
		if upper := strings.ToUpper(method); upper != method && slices.Contains(usualMethods, upper) {
			k.failf(fmt.Sprintf("%s.methods[%d]", at, j), "is %.64q, which is not %s: methods are case-sensitive", method, upper)
		}
	}
	if coveredBy >= 0 {
		k.failf(at, "is never used: the first route that matches counts, and routes[%d] matches all of its requests; put it before that", coveredBy)
	}
}

// idlesForever reports whether a stream of a route may be idle without a limit on one of its listeners.
func (k *checker) idlesForever(r *Route) bool {
	return r.StreamIdle < 0 || r.StreamIdle == 0 && slices.ContainsFunc(k.config.Listeners, func(l Listener) bool {
		return l.StreamIdle < 0 && (len(r.Listeners) == 0 || slices.Contains(r.Listeners, l.Name))
	})
}

// usualMethods are the methods of RFC 9110 and RFC 5789.
var usualMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"}
