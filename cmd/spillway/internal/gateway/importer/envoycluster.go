package importer

import (
	"slices"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// newCluster imports a cluster, but for its retries, which routes have.
func (e *envoyImport) newCluster(c document.Part) {
	name := c.Get("name")
	x := e.cluster(name.Text())
	if x.Name == "" || strings.Contains(x.Name, "~") || e.clusters[x.Name] != nil {
		c.Leave("a cluster must have a unique name without ~", "")
		return
	}
	name.Carry("clusters[].name")
	x.Retry.Mode = "off"
	e.endpoints(x, c)
	e.connections(x, c)
	for _, t := range c.At("circuit_breakers", "thresholds").List() {
		e.thresholds(x, t)
	}
	for _, t := range c.At("circuit_breakers", "per_host_thresholds").List() {
		e.limit(x, t.Get("max_connections"), "max_connections", "")
	}
	e.outliers(x, c.Get("outlier_detection"))
	c.At("http2_protocol_options", "max_concurrent_streams").Leave("an endpoint says itself how many streams it takes on a connection", "inflight.max_in_flight")
	for i, h := range c.Get("health_checks").List() {
		if i > 0 {
			h.Leave("a cluster has one kind of health check", "")
		} else {
			e.health(x, h)
		}
	}
	e.clientTLS(x, c.Get("transport_socket"))
	e.clusters[x.Name] = x
	e.order = append(e.order, x.Name)
}

func (e *envoyImport) endpoints(x *config.Cluster, c document.Part) {
	switch kind := c.Get("type"); strings.ToUpper(kind.Text()) {
	case "STATIC":
		kind.Carry("clusters[].endpoints")
	case "STRICT_DNS", "LOGICAL_DNS":
		kind.Change("clusters[].endpoints", "a name is one endpoint, whatever addresses it has; it is looked up for each connection")
	}
	c.Get("lb_policy").Leave("of two random endpoints, the one with fewer requests in flight is used", "")
	assigned := c.Get("load_assignment")
	if n := assigned.Get("cluster_name"); n.Text() == x.Name {
		n.Carry("clusters[].name")
	}
	var all []string
	for _, group := range assigned.Get("endpoints").List() {
		for _, endpoint := range group.Get("lb_endpoints").List() {
			address := endpoint.At("endpoint", "address", "socket_address")
			text, ok := socketAddress(address)
			if !ok {
				address.Leave("it is no address of TCP", "")
				continue
			}
			if slices.Contains(all, text) {
				address.Leave("it is there twice, and an endpoint counts once", "")
				continue
			}
			if assign(e.builder, e.cluster(x.Name), address, "endpoints", "", []string{text}) { // alone: there may be many
				all = append(all, text)
			}
		}
	}
	if len(all) == 0 {
		e.Notef("cluster %q has no address that could be imported: it got the endpoint %s", x.Name, e.options.Upstream)
		return
	}
	x.Endpoints = all
}

func (e *envoyImport) connections(x *config.Cluster, c document.Part) {
	put(e.builder, x, c.Get("connect_timeout"), "connect_timeout", "")
	options := c.At("typed_extension_protocol_options", "envoy.extensions.upstreams.http.v3.HttpProtocolOptions")
	for _, common := range []document.Part{c.Get("common_http_protocol_options"), options.Get("common_http_protocol_options")} {
		put(e.builder, x, common.Get("idle_timeout"), "idle_timeout", "")
	}
	options.Get("@type").Carry("clusters[].protocol")
	for _, p := range []struct {
		at       document.Part
		protocol string
	}{
		{c.Get("http2_protocol_options"), "http2"},
		{options.At("explicit_http_config", "http2_protocol_options"), "http2"},
		{options.At("explicit_http_config", "http_protocol_options"), "http1"},
	} {
		if !p.at.Given() {
			continue
		}
		x.Protocol = p.protocol
		if p.at.Empty() {
			p.at.Carry("clusters[].protocol")
		}
	}
}

func (e *envoyImport) thresholds(x *config.Cluster, c document.Part) {
	priority := c.Get("priority")
	if p := strings.ToUpper(priority.Text()); p != "" && p != "DEFAULT" && p != "0" {
		c.Leave("there are no priorities of routes", "criticality, by which the least important requests are rejected first")
		return
	}
	priority.Carry("the default")
	e.limit(x, c.Get("max_connections"), "max_connections", "it is for each endpoint and protocol, not for all together; requests wait for a connection")
	if e.limit(x, c.Get("max_requests"), "inflight.max_in_flight", "") {
		x.Inflight.Mode = "enforce"
	}
	c.Get("max_pending_requests").Leave("requests that wait for a connection count as in flight", "inflight.max_in_flight; batch.queue bounds a queue")
	c.Get("max_retries").Leave("retries are bound to a share of the requests, not to so many at once", "retry.ratio")
	budget := c.At("retry_budget", "budget_percent")
	percent := budget.Get("value").Or(budget)
	if f, ok := percent.Number(); ok && f > 0 && f <= 100 {
		assign(e.builder, x, percent, "retry.ratio", "it is a share of arriving requests, not of requests in flight", f/100)
	}
	c.At("retry_budget", "min_retry_concurrency").Leave("a cluster with few requests saves up for retries, and has no minimum", "")
	c.Get("track_remaining").Leave("what is left of a limit shows up in the metrics in any case", "")
}

func (e *envoyImport) health(x *config.Cluster, c document.Part) {
	var h config.Health
	var kind document.Part
	for _, k := range []struct{ field, kind string }{{"http_health_check", "http"}, {"grpc_health_check", "grpc"}, {"tcp_health_check", "tcp"}} {
		if at := c.Get(k.field); at.Given() {
			h.Type, kind = k.kind, at
		}
	}
	if h.Type == "" {
		c.Leave("health checks are by HTTP, gRPC or TCP", "")
		return
	}
	if kind.Empty() {
		kind.Carry("clusters[].health.type")
	}
	x.Health = &h
	put(e.builder, x, kind.Get("path"), "health.path", "")
	put(e.builder, x, kind.Get("host"), "health.host", "")
	put(e.builder, x, kind.Get("service_name"), "health.service", "")
	for _, field := range []string{"interval", "timeout", "healthy_threshold", "unhealthy_threshold"} {
		put(e.builder, x, c.Get(field), "health."+field, "")
	}
	jitter := c.Get("interval_jitter_percent")
	if f, ok := jitter.Number(); ok && f > 0 {
		assign(e.builder, x, jitter, "health.jitter", "", f/100)
	}
}
