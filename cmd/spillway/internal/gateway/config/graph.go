package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config/reach"
)

// A graph has what of a configuration refers to what, with defaults.
type graph struct {
	listeners []Listener
	routes    []Route
	to        map[string][]int // the routes to each cluster, by its name
	named     map[string]int   // listeners by name; nil if some name is missing
	clusters  map[string]int   // by name; nil if some name is missing
}

func newGraph(c *Config) graph {
	g := graph{listeners: c.Listeners, routes: c.Routes, to: make(map[string][]int, len(c.Clusters))}
	g.named = byName(c.Listeners, func(l *Listener) string { return l.Name })
	g.clusters = byName(c.Clusters, func(x *Cluster) string { return x.Name })
	for i := range c.Routes {
		name := c.Routes[i].Cluster
		g.to[name] = append(g.to[name], i)
	}
	return g
}

// byName returns the places of the elements of a list by their names, nil if some name is missing.
func byName[T any](all []T, name func(x *T) string) map[string]int {
	at := make(map[string]int, len(all))
	for i := range all {
		at[name(&all[i])] = i
	}
	if _, missing := at[""]; missing || len(all) == 0 {
		return nil
	}
	return at
}

// has reports whether there is such a route to a cluster.
func (g *graph) has(cluster string, such func(r *Route) bool) bool {
	return slices.ContainsFunc(g.to[cluster], func(i int) bool { return such(&g.routes[i]) })
}

// loops reports endpoints at which this proxy listens itself, if the requests that come by them go there again.
func (k *checker) loops() {
	k.toItself(func(at string, x *Cluster, listener int) {
		if name := k.listeners[listener].Name; k.has(x.Name, func(r *Route) bool { return r.isOf(name) }) {
			k.failf(at, "is listeners[%d] of this proxy, from which requests go to %.64q again, without end: name the server behind the proxy", listener, x.Name)
		}
	})
	for i := range k.config.Mongo {
		m := &k.config.Mongo[i]
		for j, endpoint := range m.Endpoints {
			if reach.Meets(m.Address, endpoint) {
				k.failf(fmt.Sprintf("mongo[%d].endpoints[%d]", i, j), "is the address of mongo[%d] itself: name the server behind the proxy", i)
			}
		}
	}
}

// warnItself warns of endpoints that are this proxy, and end nothing that [checker.loops] has found endless.
func (k *checker) warnItself() {
	k.toItself(func(at string, _ *Cluster, listener int) {
		k.failf(at, "is listeners[%d] of this proxy: it counts and limits such requests twice", listener)
	})
	admin := cmp.Or(k.config.Admin.Address, DefaultAdmin)
	for i := range k.config.Clusters {
		for j, endpoint := range k.config.Clusters[i].Endpoints {
			if reach.Meets(admin, endpoint) {
				k.failf(endpointAt(i, j), "is admin.address: clients see the pages of operators, as if they were on this machine")
			}
		}
	}
}

// warnUnbounded warns of clusters to which requests may be any number and take any time.
func (k *checker) warnUnbounded() {
	for i := range k.config.Clusters {
		x := &k.config.Clusters[i]
		endless := slices.IndexFunc(k.to[x.Name], func(i int) bool { return k.routes[i].Timeout == 0 && !k.routes[i].Exempt })
		if endless >= 0 && k.config.isUnlimited(x) {
			k.failf(fmt.Sprintf("clusters[%d]", i), "has no limit, and routes[%d] no timeout: if %s gets slow, requests pile up; "+
				"set timeout, inflight.max_in_flight or rate_limit, or leave shed on", k.to[x.Name][endless], x.Name)
		}
	}
}

// isUnlimited reports whether no setting of a cluster limits how many requests it has at once, or how long they take.
func (c *Config) isUnlimited(x *Cluster) bool {
	off := func(m Mode) bool { return c.modeOf(m) == spillway.ModeOff }
	return x.Batch == nil && x.XDS == nil && x.ResponseTimeout == 0 && off(x.Shed.Mode) &&
		(x.Inflight.MaxInFlight < 0 || off(x.Inflight.Mode)) && (x.RateLimit.Rate <= 0 || off(x.RateLimit.Mode)) && (x.Quota == nil || off(x.Quota.Mode))
}

// toItself calls found with each endpoint of a cluster that is a listener of this proxy.
func (k *checker) toItself(found func(at string, x *Cluster, listener int)) {
	for i := range k.config.Clusters {
		x := &k.config.Clusters[i]
		for j, endpoint := range x.Endpoints {
			if n := slices.IndexFunc(k.listeners, func(l Listener) bool { return reach.Meets(l.Address, endpoint) }); n >= 0 {
				found(endpointAt(i, j), x, n)
			}
		}
	}
}

func endpointAt(cluster, i int) string { return fmt.Sprintf("clusters[%d].endpoints[%d]", cluster, i) }

// isOf reports whether the route takes requests from a listener.
func (r *Route) isOf(listener string) bool {
	return len(r.Listeners) == 0 || slices.Contains(r.Listeners, listener)
}
