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
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// listener imports a listener, and returns its name, or nothing if it could not be
// imported. A listener of TLS is imported with TLS or not at all.
func (e *envoyImport) listener(c document.Part) (name string) {
	address := c.At("address", "socket_address")
	text, ok := socketAddress(address)
	chains := c.Get("filter_chains").List()
	if other := c.Get("default_filter_chain"); other.There() {
		chains = append(chains, other)
	}
	switch {
	case !ok:
		address.Leave("it is not a TCP address", "")
		return ""
	case c.Get("bind_to_port").Text() == "false":
		c.LeaveAs(Traffic, "Envoy does not listen on this address either", "")
		return ""
	case !slices.ContainsFunc(chains, func(chain document.Part) bool { return manager(chain).There() }):
		c.LeaveAs(Traffic, "no filter of the listener is an HTTP connection manager", "")
		return ""
	}
	l := config.Listener{Name: c.Get("name").Text(), Address: text}
	before := e.Mark()
	if !settle(address, "listeners[].address", "", e.tryListener(l)) {
		return ""
	}
	if problem := e.secure(&l, chains); problem != "" {
		e.Back(before)
		for _, chain := range chains {
			for _, part := range []string{"transport_socket", "tls_context", "filter_chain_match"} {
				chain.Get(part).LeaveAs(Security, problem, "a listener of your own, with tls or peers")
			}
		}
		c.LeaveAs(Traffic, "the listener could not be imported: "+problem, "")
		return ""
	}
	e.config.Listeners = append(e.config.Listeners, l)
	c.Get("name").Carry("listeners[].name")
	for _, chain := range chains {
		e.filters(&e.config.Listeners[len(e.config.Listeners)-1], chain)
	}
	for _, f := range c.Get("listener_filters").List() {
		if kind := f.At("typed_config", "@type").Text(); strings.HasSuffix(kind, ".TlsInspector") {
			f.Carry("listeners[].tls")
		}
		f.LeaveAs(Traffic, "bytes before TLS or HTTP are not read", "")
	}
	return cmp.Or(l.Name, l.Address)
}

// tryListener returns why the proxy does not accept a listener, alone or together with one of the same name
// or address.
func (e *envoyImport) tryListener(l config.Listener) error {
	_, trial := e.trial(&l)
	for _, other := range e.config.Listeners {
		if other.Address == l.Address || cmp.Or(other.Name, other.Address) == cmp.Or(l.Name, l.Address) {
			trial.Listeners = []config.Listener{other, l}
		}
	}
	return trial.Check()
}

// secure sets what filter chains say of TLS and of the networks of clients. A problem
// means that the listener would be less secure than it is in Envoy.
func (e *envoyImport) secure(l *config.Listener, chains []document.Part) (problem string) {
	first := chains[0]
	for _, other := range chains[1:] {
		if !reflect.DeepEqual(first.Get("transport_socket").Value, other.Get("transport_socket").Value) ||
			!reflect.DeepEqual(first.Get("tls_context").Value, other.Get("tls_context").Value) {
			return "its filter chains differ in TLS, and a listener here has one certificate and one rule for clients"
		}
	}
	for _, chain := range chains {
		for _, part := range chain.Get("filter_chain_match").Fields() {
			switch field := document.LastField(part.Path); {
			case field == "server_names", field == "transport_protocol", field == "application_protocols":
			case field == "source_prefix_ranges" && len(chains) == 1:
				peers, ok := prefixes(part)
				if !ok {
					return "a network in source_prefix_ranges cannot be read"
				}
				l.Peers = peers
				part.Carry("listeners[].peers")
			default:
				return "which clients a filter chain is for cannot be carried: " + field
			}
		}
	}
	for i, chain := range chains {
		t, problem := e.serverTLS("listener-"+cmp.Or(l.Name, l.Address), chain)
		if problem != "" {
			return problem
		}
		if i == 0 {
			l.TLS = t
		}
	}
	return ""
}

// prefixes returns the networks of a list of CidrRange.
func prefixes(c document.Part) (all []string, ok bool) {
	for _, part := range c.List() {
		prefix, err := netip.ParsePrefix(part.Get("address_prefix").Text() + "/" + cmp.Or(part.Get("prefix_len").Text(), "0"))
		if err != nil {
			return nil, false
		}
		all = append(all, prefix.Masked().String())
	}
	return all, len(all) > 0
}

func manager(chain document.Part) document.Part {
	for _, f := range chain.Get("filters").List() {
		m := f.Get("typed_config")
		if strings.HasSuffix(m.Get("@type").Text(), ".HttpConnectionManager") || m.Get("route_config").There() || m.Get("rds").There() {
			return m
		}
		if m = f.Get("config"); m.Get("route_config").There() || f.Get("route_config").There() { // before version 3
			return f
		}
	}
	return document.Part{}
}

// filters imports the filters of connections, such as the HTTP connection manager.
func (e *envoyImport) filters(l *config.Listener, chain document.Part) {
	chain.Get("name").LeaveAs(Detail, "filter chains have no names", "")
	chain.Get("filter_chain_match").LeaveAs(Detail, "all connections of the listener are accepted; routes choose by host", "")
	for _, f := range chain.Get("filters").List() {
		m := f.Get("typed_config")
		kind := m.Get("@type")
		switch {
		case strings.HasSuffix(kind.Text(), ".HttpConnectionManager"):
			f.Get("name").Carry("listeners[]")
			kind.Carry("listeners[]")
			e.connectionManager(l, m)
		case m.There() && !m.Get("route_config").There():
			rank := Security // it may deny
			if strings.HasSuffix(kind.Text(), ".ConnectionLimit") || strings.HasSuffix(kind.Text(), ".LocalRateLimit") {
				rank = Limit
			}
			f.LeaveWhole(rank, "connections meet no such filter", "peers, tls.client_ca, max_connections or connection_rate of a listener")
		}
	}
}

// harmless are filters of requests that let no request through that would be denied, and
// what to do without them.
var harmless = map[string]document.Rank{
	".Router": Detail, ".Compressor": Detail, ".Decompressor": Detail, ".GrpcStats": Detail, ".grpc_stats.v3.FilterConfig": Detail, ".Tap": Detail,
	".HealthCheck": Traffic, ".HTTPFault": Detail, ".GrpcWeb": Traffic, ".Cors": Traffic,
	".RateLimit": Limit, ".AdaptiveConcurrency": Limit, ".AdmissionControl": Limit, ".BandwidthLimit": Limit, ".Buffer": Limit,
}

// counterparts are settings that do what a filter does.
var counterparts = map[string]string{
	".AdaptiveConcurrency": "clusters[].shed, which is on by default", ".AdmissionControl": "clusters[].throttle, which is on by default",
	".RateLimit": "clusters[].quota", ".Buffer": "listeners[].max_body_bytes",
	".HealthCheck": "/readyz of the admin address", ".GrpcStats": "/metrics of the admin address",
}

func (e *envoyImport) connectionManager(l *config.Listener, m document.Part) {
	for _, t := range []struct {
		at     document.Part
		field  string
		reason string
		zero   time.Duration // in place of 0, which means none; 0: there is no such value
	}{
		{m.Get("request_headers_timeout"), "header_timeout", "", 0},
		{m.Get("request_timeout"), "max_body_time", "it is for the body, and header_timeout for the headers", -1},
		{
			m.Get("stream_idle_timeout"), "stream_idle_timeout",
			"it is for gRPC calls and upgraded connections; others have body_timeout and write_timeout", -1,
		},
		{m.At("common_http_protocol_options", "idle_timeout"), "idle_timeout", "", 0},
	} {
		switch d, ok := t.at.Duration(); {
		case ok && d == 0 && t.zero == 0:
			t.at.Leave("there is always such a limit", "")
		case ok:
			assign(e.builder, l, t.at, t.field, t.reason, cmp.Or(d, t.zero))
		}
	}
	put(e.builder, l, m.At("http2_protocol_options", "max_concurrent_streams"), "max_streams", "")
	if n, ok := m.Get("max_request_headers_kb").Count(); ok && n > 0 && n <= 1<<14 {
		assign(e.builder, l, m.Get("max_request_headers_kb"), "max_header_bytes", "", n<<10)
	}
	if keep := m.Get("preserve_external_request_id"); keep.Text() == "true" {
		assign(e.builder, l, keep, "preserve_external_request_id", "", true)
	}
	m.Get("access_log").LeaveAs(Detail, "the log has its own form", "log")
	for _, u := range m.Get("upgrade_configs").List() {
		if kind := u.Get("upgrade_type"); strings.EqualFold(kind.Text(), "websocket") {
			kind.Carry("routes[].upgrades")
		}
	}
	fixed(m)
	e.httpFilters(m)
}

// httpFilters reports the filters of a connection manager, but for local rate limits: clusters have those.
func (e *envoyImport) httpFilters(m document.Part) {
	for _, f := range m.Get("http_filters").List() {
		kind := f.At("typed_config", "@type").Text()
		last := kind[max(0, strings.LastIndexByte(kind, '.')):]
		if last == ".FilterConfig" { // many filters have one
			last = kind[max(0, strings.Index(kind, ".grpc_stats.")):]
		}
		rank, known := harmless[last]
		switch {
		case strings.HasSuffix(kind, ".Router"), kind == "" && strings.HasSuffix(f.Get("name").Text(), ".router"):
			f.Carry("routes[]")
		case last == ".LocalRateLimit":
			e.limits = append(e.limits, f)
		case known:
			f.LeaveWhole(rank, "the proxy has no such filter", counterparts[last])
		default:
			f.LeaveWhole(Security, "the proxy has no such filter, and the filter may deny requests", "the same check in the service, or in front of the proxy")
		}
	}
}

// fixed reports options that the proxy has one value of.
func fixed(m document.Part) {
	const path = "routes match the normalized path; it is sent on as the client wrote it, or rejected if servers read it with different routes"
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
		{"preserve_external_request_id", []string{"false"}, ""},
		{"generate_request_id", []string{"true"}, "each request has an id"},
		{"always_set_request_id_in_response", []string{"true"}, "the client always gets the id"},
		{"strip_any_host_port", []string{"true"}, "routes match the host without its port"},
		{"strip_matching_host_port", []string{"true", "false"}, ""},
	} {
		c := m.Get(o.name)
		switch {
		case slices.Contains(o.same, c.Text()):
			c.Carry("the default")
		case o.reason != "":
			c.Change("the default", o.reason)
		}
	}
}

func socketAddress(c document.Part) (string, bool) {
	host, port := c.Get("address").Text(), c.Get("port_value").Text()
	_, ok := c.Get("port_value").Count()
	protocol := strings.ToUpper(c.Get("protocol").Text())
	return net.JoinHostPort(host, port), ok && host != "" && (protocol == "" || protocol == "TCP")
}
