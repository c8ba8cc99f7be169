package importer

import (
	"fmt"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// Envoy imports configurations of Envoy in YAML or JSON: a bootstrap, the answer to
// /config_dump, or resources (clusters, route configurations) by themselves. Wherever
// in a document they are, clusters are known by their load_assignment, lb_policy or
// circuit_breakers, route configurations by their virtual_hosts, and listeners by
// their filter_chains.
//
// Retries belong to clusters here, so routes with different retries of a cluster
// get clusters of their own with the same endpoints.
func Envoy(docs []Document, o Options) (*Result, error) {
	e := envoyImport{
		builder: newBuilder(o), clusters: make(map[string]*config.Cluster), used: make(map[string]bool),
		secrets: make(map[string]document.Part), wanted: make(map[string][]*listening),
	}
	roots, err := e.documents(docs, tree)
	if err != nil {
		return nil, err
	}
	for i := range roots {
		roots[i].Single = true
		e.find(roots[i], nil)
	}
	described := e.allRoutes()
	e.mixed()
	for _, name := range e.order {
		if !e.used[name] {
			x := *e.clusters[name]
			e.place(&x)
		}
	}
	e.nothing = described && len(e.config.Routes) == 0 || len(e.order) == 0 ||
		len(e.found.listeners) > 0 && len(e.config.Listeners) == 0
	if len(e.config.Routes) == 0 && len(e.config.Clusters) > 1 {
		e.config.Routes = []config.Route{{Cluster: e.config.Clusters[0].Name}}
		e.Notef("no route was imported: one was made up, of all requests to cluster %s", e.config.Clusters[0].Name)
	}
	if e.note15 {
		e.Notef("routes without a timeout got the one that Envoy gives them, %v", defaultTimeout)
	}
	return e.done(roots)
}

// allRoutes imports listeners, clusters and routes, and reports whether routes were found.
func (e *envoyImport) allRoutes() bool {
	for _, l := range e.found.listeners {
		before := len(e.Files)
		if l.name = e.listener(l.Part); l.name == "" {
			e.Files = e.Files[:before]
		}
	}
	for _, c := range e.found.clusters {
		e.newCluster(c)
	}
	e.rateLimits()
	described := len(e.found.routes) > 0
	e.resolve()
	for _, c := range e.found.routes {
		var names []string
		for _, l := range c.listeners {
			if l.name != "" {
				names = append(names, l.name)
			}
		}
		if len(c.listeners) > 0 && len(names) == 0 {
			c.LeaveAs(Traffic, "its listener could not be imported", "")
			continue
		}
		e.routes(c.Part, names)
	}
	return described
}

// envoyImport is what is known while documents are read.
type envoyImport struct {
	*builder

	found struct {
		clusters  []document.Part
		listeners []*listening
		routes    []routing
	}
	clusters map[string]*config.Cluster
	order    []string
	used     map[string]bool          // by routes
	secrets  map[string]document.Part // by name
	wanted   map[string][]*listening  // the listeners of route configurations by name
	limits   []document.Part          // the local rate limits of listeners
	note15   bool                     // some route has Envoy's default timeout
}

// A listening is a listener, and its name, empty if it could not be imported.
type listening struct {
	document.Part

	name string
}

// A routing is a route configuration, and the listeners that it is of; none means all.
type routing struct {
	document.Part

	listeners []*listening
}

// resolve finds the listeners of route configurations outside of all listeners: the ones that
// name them. Where listeners name route configurations, one that none names is for none.
func (e *envoyImport) resolve() {
	kept := e.found.routes[:0]
	for _, c := range e.found.routes {
		if len(c.listeners) == 0 && len(e.wanted) > 0 {
			if c.listeners = e.wanted[c.Get("name").Text()]; len(c.listeners) == 0 {
				c.LeaveAs(Traffic, "no listener names this route configuration", "")
				continue
			}
		}
		kept = append(kept, c)
	}
	e.found.routes = kept
}

// find looks for resources, within a listener or, if it is nil, outside of all.
func (e *envoyImport) find(c document.Part, listener *listening) {
	switch {
	case c.Get("virtual_hosts").There():
		r := routing{Part: c}
		if listener != nil {
			r.listeners = []*listening{listener}
		}
		e.found.routes = append(e.found.routes, r)
		return
	case c.Get("load_assignment").There() || c.Get("lb_policy").There() || c.Get("circuit_breakers").There():
		e.found.clusters = append(e.found.clusters, c)
		return
	case c.Get("filter_chains").There():
		listener = &listening{Part: c}
		e.found.listeners = append(e.found.listeners, listener)
	case c.Get("name").There() && (c.Get("tls_certificate").There() || c.Get("validation_context").There()):
		e.secrets[c.Get("name").Text()] = c
	}
	if name := c.At("rds", "route_config_name"); name.There() && listener != nil {
		e.wanted[name.Text()] = append(e.wanted[name.Text()], listener)
		name.Carry("routes[].listeners")
	}
	for _, part := range c.Children() {
		e.find(part, listener)
	}
}

// mixed notes where requests may match routes that are not theirs in Envoy: routes of a
// route configuration outside of all listeners are for each, and so are all where there
// is one listener only.
func (e *envoyImport) mixed() {
	seen := make(map[*listening]bool) // nil: outside of all
	for _, c := range e.found.routes {
		of := c.listeners
		if len(of) == 0 || len(e.found.listeners) < 2 {
			of = []*listening{nil}
		}
		for _, at := range of {
			if len(seen) > 0 && (at == nil || seen[at] || seen[nil]) {
				e.Notef("there are several route configurations for a listener: the first route of any that matches decides")
				return
			}
		}
		for _, at := range of {
			seen[at] = true
		}
	}
}

// known returns a cluster that routes name. Where no document has it, it is made up.
func (e *envoyImport) known(name string) *config.Cluster {
	if e.clusters[name] == nil {
		x := e.cluster(name)
		x.Retry.Mode = "off"
		e.clusters[name] = x
		e.order = append(e.order, name)
		e.Notef("no document has cluster %s: it got the endpoint %s", fmt.Sprintf("%.64q", name), e.options.Upstream)
	}
	return e.clusters[name]
}
