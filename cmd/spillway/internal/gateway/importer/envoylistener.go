package importer

import (
	"cmp"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// listener imports a listener, and returns its name, or nothing if it could not be
// imported. A listener of TLS is imported with TLS or not at all.
func (e *envoyImport) listener(c cursor) (name string) {
	address := c.at("address", "socket_address")
	text, ok := socketAddress(address)
	chains := c.get("filter_chains").list()
	if other := c.get("default_filter_chain"); other.there() {
		chains = append(chains, other)
	}
	switch {
	case !ok:
		address.leave("it is not a TCP address", "")
		return ""
	case c.get("bind_to_port").text() == "false":
		c.leaveAs(Traffic, "Envoy does not listen on this address either", "")
		return ""
	case !slices.ContainsFunc(chains, func(chain cursor) bool { return manager(chain).there() }):
		c.leaveAs(Traffic, "no filter of the listener is an HTTP connection manager", "")
		return ""
	}
	l := config.Listener{Name: c.get("name").text(), Address: text}
	carried, problem := e.secure(&l, chains)
	if problem != "" {
		for _, chain := range chains {
			for _, part := range []string{"transport_socket", "tls_context", "filter_chain_match"} {
				chain.get(part).leaveAs(Security, problem, "a listener of your own, with tls or peers")
			}
		}
		c.leaveAs(Traffic, "the listener could not be imported: "+problem, "")
		return ""
	}
	trial := e.config
	trial.Listeners = append(slices.Clip(trial.Listeners), l)
	trial.Clusters, trial.Routes = []config.Cluster{*e.cluster("any")}, nil
	if !e.settle(address, "listeners[].address", "", trial.Check(), func() { e.config.Listeners = trial.Listeners }) {
		return ""
	}
	for _, part := range carried {
		part.at.carry("listeners[]." + part.field)
	}
	c.get("name").carry("listeners[].name")
	for _, chain := range chains {
		e.filters(&e.config.Listeners[len(e.config.Listeners)-1], chain)
	}
	c.get("listener_filters").each(func(f cursor) {
		if kind := f.at("typed_config", "@type").text(); strings.HasSuffix(kind, ".TlsInspector") {
			f.carry("listeners[].tls")
		}
		f.leaveAs(Traffic, "bytes before TLS or HTTP are not read", "")
	})
	return cmp.Or(l.Name, l.Address)
}

// A mapping is a part of a document, and the field that it was carried to.
type mapping struct {
	at    cursor
	field string
}

// secure sets what filter chains say of TLS and of the networks of clients. A problem
// means that the listener would be less secure than it is in Envoy.
func (e *envoyImport) secure(l *config.Listener, chains []cursor) (carried []mapping, problem string) {
	first := chains[0]
	for _, other := range chains[1:] {
		if !reflect.DeepEqual(first.get("transport_socket").value, other.get("transport_socket").value) ||
			!reflect.DeepEqual(first.get("tls_context").value, other.get("tls_context").value) {
			return nil, "its filter chains differ in TLS, and a listener here has one certificate and one rule for clients"
		}
	}
	for _, chain := range chains {
		for _, part := range chain.get("filter_chain_match").fields() {
			switch field := lastField(part.path); {
			case field == "server_names", field == "transport_protocol", field == "application_protocols":
			case field == "source_prefix_ranges" && len(chains) == 1:
				peers, ok := prefixes(part)
				if !ok {
					return nil, "a network in source_prefix_ranges cannot be read"
				}
				l.Peers = peers
				carried = append(carried, mapping{part, "peers"})
			default:
				return nil, "which clients a filter chain is for cannot be carried: " + field
			}
		}
	}
	for i, chain := range chains {
		t, parts, problem := e.serverTLS(chain)
		if problem != "" {
			return nil, problem
		}
		if carried = append(carried, parts...); i == 0 {
			l.TLS = t
		}
	}
	return carried, ""
}

// prefixes returns the networks of a list of CidrRange.
func prefixes(c cursor) (all []string, ok bool) {
	for _, part := range c.list() {
		prefix, err := netip.ParsePrefix(part.get("address_prefix").text() + "/" + cmp.Or(part.get("prefix_len").text(), "0"))
		if err != nil {
			return nil, false
		}
		all = append(all, prefix.Masked().String())
	}
	return all, len(all) > 0
}

// manager returns the HTTP connection manager of a filter chain.
func manager(chain cursor) cursor {
	for _, f := range chain.get("filters").list() {
		m := f.get("typed_config")
		if strings.HasSuffix(m.get("@type").text(), ".HttpConnectionManager") || m.get("route_config").there() || m.get("rds").there() {
			return m
		}
		if m = f.get("config"); m.get("route_config").there() || f.get("route_config").there() { // before version 3
			return f
		}
	}
	return cursor{}
}

// filters imports the filters of connections, such as the HTTP connection manager.
func (e *envoyImport) filters(l *config.Listener, chain cursor) {
	chain.get("name").leaveAs(Detail, "filter chains have no names", "")
	chain.get("filter_chain_match").leaveAs(Detail, "all connections of the listener are accepted; routes choose by host", "")
	for _, f := range chain.get("filters").list() {
		m := f.get("typed_config")
		kind := m.get("@type")
		switch {
		case strings.HasSuffix(kind.text(), ".HttpConnectionManager"):
			f.get("name").carry("listeners[]")
			kind.carry("listeners[]")
			e.connectionManager(l, m)
		case m.there() && !m.get("route_config").there():
			rank := Security // it may deny
			if strings.HasSuffix(kind.text(), ".ConnectionLimit") || strings.HasSuffix(kind.text(), ".LocalRateLimit") {
				rank = Limit
			}
			f.leaveAs(rank, "connections meet no such filter", "peers, tls.client_ca, max_connections or connection_rate of a listener")
		}
	}
}

// harmless are filters of requests that let no request through that would be denied, and
// what to do without them.
var harmless = map[string]Rank{
	".Router": Detail, ".Compressor": Detail, ".Decompressor": Detail, ".GrpcStats": Detail, ".FilterConfig": Detail, ".Tap": Detail,
	".HealthCheck": Traffic, ".HTTPFault": Detail, ".GrpcWeb": Traffic, ".Cors": Traffic,
	".LocalRateLimit": Limit, ".RateLimit": Limit, ".AdaptiveConcurrency": Limit, ".AdmissionControl": Limit, ".BandwidthLimit": Limit, ".Buffer": Limit,
}

// connectionManager imports the options of an HTTP connection manager.
func (e *envoyImport) connectionManager(l *config.Listener, m cursor) {
	for _, t := range []struct {
		at     cursor
		field  string
		reason string
		zero   time.Duration // in place of 0, which means none; 0: there is no such value
		set    func(*config.Listener, time.Duration)
	}{
		{m.get("request_headers_timeout"), "header_timeout", "", 0, func(l *config.Listener, d time.Duration) { l.HeaderTimeout = d }},
		{m.get("request_timeout"), "max_body_time", "it is for the body, and header_timeout for the headers", -1,
			func(l *config.Listener, d time.Duration) { l.MaxBodyTime = d }},
		{m.get("stream_idle_timeout"), "stream_idle_timeout", "it is for gRPC calls and upgraded connections; others have body_timeout and write_timeout", -1,
			func(l *config.Listener, d time.Duration) { l.StreamIdle = d }},
		{m.at("common_http_protocol_options", "idle_timeout"), "idle_timeout", "", 0, func(l *config.Listener, d time.Duration) { l.IdleTimeout = d }},
	} {
		d, ok := t.at.duration()
		if ok && d == 0 {
			if d, ok = t.zero, t.zero != 0; !ok {
				t.at.leave("there is always such a limit", "")
			}
		}
		if ok {
			e.setListener(l, t.at, t.field, t.reason, func(l *config.Listener) { t.set(l, d) })
		}
	}
	if n, ok := m.at("http2_protocol_options", "max_concurrent_streams").count(); ok && n > 0 {
		e.setListener(l, m.at("http2_protocol_options", "max_concurrent_streams"), "max_streams", "", func(l *config.Listener) { l.MaxStreams = n })
	}
	if n, ok := m.get("max_request_headers_kb").count(); ok && n > 0 && n <= 1<<14 {
		e.setListener(l, m.get("max_request_headers_kb"), "max_header_bytes", "", func(l *config.Listener) { l.MaxHeaderBytes = n << 10 })
	}
	m.get("access_log").leaveAs(Detail, "the log has its own form", "log")
	m.get("upgrade_configs").each(func(u cursor) {
		if kind := u.get("upgrade_type"); strings.EqualFold(kind.text(), "websocket") {
			kind.carry("routes[].upgrades")
		}
	})
	fixed(m)
	m.get("http_filters").each(func(f cursor) {
		kind := f.at("typed_config", "@type").text()
		rank, known := harmless[kind[strings.LastIndexByte(kind, '.')+1-min(1, strings.Count(kind, ".")):]]
		switch {
		case strings.HasSuffix(kind, ".Router"), kind == "" && strings.HasSuffix(f.get("name").text(), ".router"):
			f.carry("routes[]")
		case known:
			f.leaveAs(rank, "requests meet no such filter", "")
		default:
			f.leaveAs(Security, "requests meet no such filter, which may deny some of them", "the same check in the service, or in front of the proxy")
		}
	})
}

// fixed reports options that the proxy has one value of.
func fixed(m cursor) {
	const path = "paths are always normalized before routes are matched"
	for _, o := range []struct {
		name   string
		same   []string // values that mean what the proxy does
		reason string   // of other values; empty: they are left out
	}{
		{"codec_type", []string{"AUTO"}, "HTTP/1.1 and HTTP/2 are both accepted"},
		{"use_remote_address", []string{"true"}, "the address of a client is always that of its connection"},
		{"xff_num_trusted_hops", []string{"0"}, "the address of a client is always that of its connection"},
		{"normalize_path", []string{"true"}, path},
		{"merge_slashes", []string{"true"}, path},
		{"path_with_escaped_slashes_action", []string{"KEEP_UNCHANGED", "IMPLEMENTATION_SPECIFIC_DEFAULT"}, ""},
		{"forward_client_cert_details", []string{"FORWARD_ONLY", "ALWAYS_FORWARD_ONLY"}, ""},
		{"strip_any_host_port", []string{"true"}, "routes match the host without its port"},
		{"strip_matching_host_port", []string{"true", "false"}, ""},
	} {
		c := m.get(o.name)
		switch {
		case slices.Contains(o.same, c.text()):
			c.carry("the default")
		case o.reason != "":
			c.changed("the default", o.reason)
		}
	}
}

// setListener changes a listener as a leaf says, unless the proxy does not accept that.
func (e *envoyImport) setListener(l *config.Listener, c cursor, field, reason string, set func(*config.Listener)) {
	next := *l
	set(&next)
	trial := config.Config{Listeners: []config.Listener{next}, Clusters: []config.Cluster{*e.cluster("any")}}
	e.settle(c, "listeners[]."+field, reason, trial.Check(), func() { *l = next })
}

// socketAddress returns host and port.
func socketAddress(c cursor) (string, bool) {
	host, port := c.get("address").text(), c.get("port_value").text()
	_, ok := c.get("port_value").count()
	protocol := strings.ToUpper(c.get("protocol").text())
	return net.JoinHostPort(host, port), ok && host != "" && (protocol == "" || protocol == "TCP")
}

// lastField returns the name of the field that a path ends with, in snake case.
func lastField(path string) string {
	path = upper.ReplaceAllString(path, "${1}_${2}")
	return strings.ToLower(path[strings.LastIndexByte(path, '.')+1:])
}
