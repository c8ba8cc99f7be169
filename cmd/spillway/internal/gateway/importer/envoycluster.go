package importer

import (
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// newCluster imports a cluster, but for its retries, which routes have.
func (e *envoyImport) newCluster(c cursor) {
	name := c.get("name")
	x := e.cluster(name.text())
	if x.Name == "" || strings.Contains(x.Name, "~") || e.clusters[x.Name] != nil {
		c.leave("a cluster must have a unique name without ~", "")
		return
	}
	name.carry("clusters[].name")
	x.Retry.Mode = "off"
	e.endpoints(x, c)
	e.connections(x, c)
	for _, t := range c.at("circuit_breakers", "thresholds").list() {
		e.thresholds(x, t)
	}
	for _, t := range c.at("circuit_breakers", "per_host_thresholds").list() {
		e.setLimit(x, t.get("max_connections"), "max_connections", "", func(x *config.Cluster, n int) { x.MaxConnections = n })
	}
	e.outliers(x, c.get("outlier_detection"))
	c.at("http2_protocol_options", "max_concurrent_streams").leave("an endpoint says itself how many streams it takes on a connection", "inflight.max_requests")
	for i, h := range c.get("health_checks").list() {
		if i > 0 {
			h.leave("a cluster has one kind of health check", "")
		}
		e.health(x, h)
	}
	e.clientTLS(x, c.get("transport_socket"))
	e.clusters[x.Name] = x
	e.order = append(e.order, x.Name)
}

// endpoints imports addresses.
func (e *envoyImport) endpoints(x *config.Cluster, c cursor) {
	switch kind := c.get("type"); strings.ToUpper(kind.text()) {
	case "STATIC":
		kind.carry("clusters[].endpoints")
	case "STRICT_DNS", "LOGICAL_DNS":
		kind.changed("clusters[].endpoints", "a name is one endpoint, whatever addresses it has; it is looked up for each connection")
	}
	c.get("lb_policy").leave("endpoints are chosen by which has fewer requests under way, of two", "")
	assigned := c.get("load_assignment")
	if n := assigned.get("cluster_name"); n.text() == x.Name {
		n.carry("clusters[].name")
	}
	fresh := true
	for _, group := range assigned.get("endpoints").list() {
		for _, endpoint := range group.get("lb_endpoints").list() {
			address := endpoint.at("endpoint", "address", "socket_address")
			text, ok := socketAddress(address)
			if !ok {
				address.leave("it is no address of TCP", "")
				continue
			}
			put := e.setCluster(x, address, "endpoints", "", func(x *config.Cluster) {
				if fresh {
					x.Endpoints = nil
				}
				x.Endpoints = append(x.Endpoints, text)
			})
			fresh = fresh && !put
		}
	}
	if fresh {
		e.notef("cluster %q has no address that could be imported: it got the endpoint %s", x.Name, e.options.Upstream)
	}
}

// connections imports timeouts and protocols.
func (e *envoyImport) connections(x *config.Cluster, c cursor) {
	e.setDuration(x, c.get("connect_timeout"), "connect_timeout", "", func(x *config.Cluster, d time.Duration) { x.ConnectTimeout = d })
	options := c.at("typed_extension_protocol_options", "envoy.extensions.upstreams.http.v3.HttpProtocolOptions")
	for _, common := range []cursor{c.get("common_http_protocol_options"), options.get("common_http_protocol_options")} {
		e.setDuration(x, common.get("idle_timeout"), "idle_timeout", "", func(x *config.Cluster, d time.Duration) { x.IdleTimeout = d })
	}
	options.get("@type").carry("clusters[].protocol")
	for _, p := range []struct {
		at       cursor
		protocol string
	}{
		{c.get("http2_protocol_options"), "http2"},
		{options.at("explicit_http_config", "http2_protocol_options"), "http2"},
		{options.at("explicit_http_config", "http_protocol_options"), "http1"},
	} {
		if p.at.report == nil {
			continue
		}
		x.Protocol = p.protocol
		if m, _ := p.at.value.(map[string]any); len(m) == 0 {
			p.at.carry("clusters[].protocol")
		}
	}
}

// thresholds imports the thresholds of circuit breakers.
func (e *envoyImport) thresholds(x *config.Cluster, c cursor) {
	priority := c.get("priority")
	if p := strings.ToUpper(priority.text()); p != "" && p != "DEFAULT" && p != "0" {
		c.leave("there are no priorities of routes", "criticality, by which the least important requests are refused first")
		return
	}
	priority.carry("the default")
	e.setLimit(x, c.get("max_connections"), "max_connections", "it is for each endpoint and protocol, not for all together; requests wait for a connection",
		func(x *config.Cluster, n int) { x.MaxConnections = n })
	e.setLimit(x, c.get("max_requests"), "inflight.max_requests", "",
		func(x *config.Cluster, n int) { x.Inflight.MaxRequests, x.Inflight.Mode = n, "enforce" })
	c.get("max_pending_requests").leave("requests that wait for a connection are counted as under way", "inflight.max_requests; batch.queue bounds a queue")
	c.get("max_retries").leave("retries are bound to a share of the requests, not to so many at once", "retry.ratio")
	budget := c.at("retry_budget", "budget_percent")
	percent := budget.get("value")
	if !percent.there() {
		percent = budget
	}
	if f, ok := percent.number(); ok && f > 0 && f <= 100 {
		e.setCluster(x, percent, "retry.ratio", "it is a share of the requests that come, not of those under way",
			func(x *config.Cluster) { x.Retry.Ratio = f / 100 })
	}
	c.at("retry_budget", "min_retry_concurrency").leave("a cluster with few requests saves up for retries, and has no minimum", "")
	c.get("track_remaining").leave("what is left of a limit shows up in the metrics in any case", "")
}

// health imports a health check.
func (e *envoyImport) health(x *config.Cluster, c cursor) {
	var h config.Health
	var kind cursor
	for _, k := range []struct{ field, kind string }{{"http_health_check", "http"}, {"grpc_health_check", "grpc"}, {"tcp_health_check", "tcp"}} {
		if at := c.get(k.field); at.report != nil {
			h.Type, kind = k.kind, at
		}
	}
	if h.Type == "" {
		c.leave("health checks are by HTTP, gRPC or TCP", "")
		return
	}
	if m, _ := kind.value.(map[string]any); len(m) == 0 {
		kind.carry("clusters[].health.type")
	}
	next := h
	if h.Type == "http" {
		next.Path = kind.get("path").text()
	}
	part := func(c cursor, field string, set func(*config.Health)) {
		if !c.there() {
			return
		}
		e.setCluster(x, c, "health."+field, "", func(x *config.Cluster) { set(x.Health) })
	}
	e.setCluster(x, kind.get("path"), "health.path", "", func(x *config.Cluster) { x.Health = &next })
	if x.Health == nil {
		x.Health = &h
	}
	part(kind.get("host"), "host", func(h *config.Health) { h.Host = kind.get("host").text() })
	part(kind.get("service_name"), "service", func(h *config.Health) { h.Service = kind.get("service_name").text() })
	for _, t := range []struct {
		field string
		set   func(*config.Health, time.Duration)
	}{
		{"interval", func(h *config.Health, d time.Duration) { h.Interval = d }},
		{"timeout", func(h *config.Health, d time.Duration) { h.Timeout = d }},
	} {
		e.setDuration(x, c.get(t.field), "health."+t.field, "", func(x *config.Cluster, d time.Duration) { t.set(x.Health, d) })
	}
	e.setCount(x, c.get("healthy_threshold"), "health.healthy_threshold", "", func(x *config.Cluster, n int) { x.Health.HealthyThreshold = n })
	e.setCount(x, c.get("unhealthy_threshold"), "health.unhealthy_threshold", "", func(x *config.Cluster, n int) { x.Health.UnhealthyThreshold = n })
	if jitter := c.get("interval_jitter_percent"); jitter.there() {
		if f, ok := jitter.number(); ok && f > 0 {
			part(jitter, "jitter", func(h *config.Health) { h.Jitter = f / 100 })
		}
	}
}
