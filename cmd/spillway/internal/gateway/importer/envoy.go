package importer

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// Envoy imports configurations of Envoy in YAML or JSON: a bootstrap, the answer to
// /config_dump, or resources (clusters, route configurations) by themselves. Wherever
// in a document they are, clusters are known by their load_assignment, lb_policy or
// circuit_breakers, route configurations by their virtual_hosts, and listeners by
// their filter_chains.
//
// Retries belong to clusters here, so routes that want different retries of a cluster
// get clusters of their own with the same endpoints.
func Envoy(docs []Document, o Options) (*Result, error) {
	e := envoyImport{builder: newBuilder(o), clusters: make(map[string]*config.Cluster), used: make(map[string]bool)}
	if err := unique(docs); err != nil {
		return nil, err
	}
	var roots []cursor
	for _, d := range docs {
		root, err := e.read(d)
		if err != nil {
			return nil, err
		}
		if len(docs) > 1 {
			root.path = d.Name + ": "
		}
		roots = append(roots, root)
		e.find(root, noListener)
	}
	var listeners []string // their names, empty for those that could not be imported
	for _, c := range e.found.listeners {
		listeners = append(listeners, e.listener(c))
	}
	for _, c := range e.found.clusters {
		e.newCluster(c)
	}
	for _, c := range e.found.routes {
		name := ""
		if c.listener != noListener && len(e.config.Listeners) > 0 {
			if name = listeners[c.listener]; name == "" {
				c.leave("its listener could not be imported", "")
				continue
			}
		}
		e.routes(c.cursor, name)
	}
	e.mixed()
	for _, name := range e.order {
		if !e.used[name] {
			x := *e.clusters[name]
			e.place(&x)
		}
	}
	if len(e.config.Routes) == 0 && len(e.config.Clusters) > 1 {
		e.config.Routes = []config.Route{{Cluster: e.config.Clusters[0].Name}}
		e.notef("no route was imported: one was made up, of all requests to cluster %s", e.config.Clusters[0].Name)
	}
	if e.note15 {
		e.notef("routes without a timeout got the one that Envoy gives them, %v", defaultTimeout)
	}
	return e.finish(roots)
}

// envoyImport is what is known while documents are read.
type envoyImport struct {
	*builder

	found struct {
		clusters, listeners []cursor
		routes              []routing
	}
	clusters map[string]*config.Cluster
	order    []string
	used     map[string]bool // by routes
	note15   bool            // some route has the timeout that nobody gave it
}

// A routing is a route configuration, and the number of the listener that it is in.
type routing struct {
	cursor

	listener int
}

const noListener = -1

// find looks for resources, within a listener or outside of all.
func (e *envoyImport) find(c cursor, listener int) {
	switch {
	case c.get("virtual_hosts").there():
		e.found.routes = append(e.found.routes, routing{c, listener})
		return
	case c.get("load_assignment").there() || c.get("lb_policy").there() || c.get("circuit_breakers").there():
		e.found.clusters = append(e.found.clusters, c)
		return
	case c.get("filter_chains").there():
		listener = len(e.found.listeners)
		e.found.listeners = append(e.found.listeners, c)
	}
	for _, part := range append(c.list(), c.fields()...) {
		e.find(part, listener)
	}
}

// mixed notes where requests may go by routes that are not theirs in Envoy: those of a
// route configuration outside of all listeners are for each, and so are all where there
// is one listener only.
func (e *envoyImport) mixed() {
	seen := make(map[int]bool)
	for _, c := range e.found.routes {
		at := c.listener
		if len(e.found.listeners) < 2 {
			at = noListener
		}
		if len(seen) > 0 && (at == noListener || seen[at] || seen[noListener]) {
			e.notef("there are several route configurations for a listener: a request goes by the first route of any that matches")
			return
		}
		seen[at] = true
	}
}

// listener imports an address, and returns the name of the listener, or nothing.
func (e *envoyImport) listener(c cursor) (name string) {
	address := c.at("address", "socket_address")
	text, ok := socketAddress(address)
	if !ok {
		address.leave("it is no address of TCP", "")
		return ""
	}
	l := config.Listener{Name: c.get("name").text(), Address: text}
	trial := e.config
	trial.Listeners = append(slices.Clip(trial.Listeners), l)
	trial.Clusters, trial.Routes = []config.Cluster{*e.cluster("any")}, nil
	e.settle(address, "listeners[].address", "without TLS, which must be written anew", trial.Check(), func() {
		e.config.Listeners = trial.Listeners
		c.get("name").carry("listeners[].name")
		name = l.Defaulted().Name
	})
	return name
}

// socketAddress returns host and port.
func socketAddress(c cursor) (string, bool) {
	host, port := c.get("address").text(), c.get("port_value").text()
	_, ok := c.get("port_value").count()
	protocol := strings.ToUpper(c.get("protocol").text())
	return net.JoinHostPort(host, port), ok && host != "" && (protocol == "" || protocol == "TCP")
}

// known returns a cluster that routes name. Where no document has it, it is made up.
func (e *envoyImport) known(name string) *config.Cluster {
	if e.clusters[name] == nil {
		x := e.cluster(name)
		x.Retry.Mode = "off"
		e.clusters[name] = x
		e.order = append(e.order, name)
		e.notef("no document has cluster %s: it got the endpoint %s", fmt.Sprintf("%.64q", name), e.options.Upstream)
	}
	return e.clusters[name]
}
