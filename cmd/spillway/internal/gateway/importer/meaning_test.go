package importer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// envoyOf imports clusters and routes of Envoy.
func envoyOf(t *testing.T, text string) *Result {
	t.Helper()
	r, err := Envoy([]Document{{Name: "envoy.yaml", Text: []byte(text)}}, Options{})
	if err != nil || r.Config == nil {
		t.Fatalf("%v, %+v", err, r)
	}
	return r
}

// noted reports whether a note begins with a path and has a text.
func noted(r *Result, path, text string) bool {
	return slices.ContainsFunc(r.Notes, func(n Note) bool { return strings.HasPrefix(n.Path, path) && strings.Contains(n.Why, text) })
}

// TestZeroOfEnvoyIsNoDefault: numbers that mean never in Envoy, and the default here.
func TestZeroOfEnvoyIsNoDefault(t *testing.T) {
	for part, field := range map[string]string{
		"common_http_protocol_options: {idle_timeout: 0s}":                                                                         "clusters[0].common_http_protocol_options.idle_timeout",
		"outlier_detection: {success_rate_stdev_factor: 0}":                                                                        "clusters[0].outlier_detection.success_rate_stdev_factor",
		"health_checks: [{interval: 1s, timeout: 1s, unhealthy_threshold: 0, healthy_threshold: 1, http_health_check: {path: /}}]": "clusters[0].health_checks[0].unhealthy_threshold",
	} {
		r := envoyOf(t, "clusters: [{name: a, lb_policy: RANDOM, "+part+"}]")
		if !noted(r, field, "") {
			t.Errorf("%s was carried as the default: %v", part, r.Carried)
		}
	}
	r, err := GRPC(Document{Name: "grpc.json", Text: []byte(`{"methodConfig": [{"name": [{"service": "a"}], "timeout": "0s"}]}`)}, Options{})
	if err != nil || !noted(r, "methodConfig[0].timeout", "") {
		t.Errorf("a call of grpc without time has no timeout: %v, %+v", err, r)
	}
}

// TestEndpointsCountOnce: Envoy may have an address in several localities.
func TestEndpointsCountOnce(t *testing.T) {
	const endpoints = "{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}"
	r := envoyOf(t, "clusters: [{name: a, load_assignment: {endpoints: ["+endpoints+", "+endpoints+"]}}]")
	if got := r.Config.Clusters[0].Endpoints; len(got) != 1 || !noted(r, "clusters[0].load_assignment.endpoints[1]", "twice") {
		t.Errorf("endpoints %v, %v", got, r.Notes)
	}
}

// TestLongestWaitOfEnvoy: the default is ten times the base interval.
func TestLongestWaitOfEnvoy(t *testing.T) {
	for backoff, want := range map[string]time.Duration{
		"base_interval: 0.1s":                   time.Second,
		"base_interval: 0.1s, max_interval: 2s": 2 * time.Second,
		"base_interval: 0.5s":                   5 * time.Second,
	} {
		r := envoyOf(t, "virtual_hosts: [{domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: a, retry_policy: {retry_on: 5xx, retry_back_off: {"+backoff+"}}}}]}]\n"+
			"clusters: [{name: a, lb_policy: RANDOM}]")
		if got := r.Config.Clusters[0].Retry.Max; got != want {
			t.Errorf("%s: %v, want %v", backoff, got, want)
		}
	}
}

func routesOf(t *testing.T, match string) (*Result, []config.Route) {
	t.Helper()
	r := envoyOf(t, "virtual_hosts: [{domains: ['*'], routes: [{match: {prefix: /a, "+match+"}, route: {cluster: a}}, {match: {prefix: /}, route: {cluster: b}}]}]\n"+
		"clusters: [{name: a, lb_policy: RANDOM}, {name: b, lb_policy: RANDOM}]")
	return r, r.Config.Routes
}

// TestHeadersOfEnvoy: a value that is an asterisk is not any value, and requests of gRPC have several
// content types.
func TestHeadersOfEnvoy(t *testing.T) {
	for _, condition := range []string{"exact_match: '*'", "string_match: {exact: '*'}"} {
		if r, routes := routesOf(t, "headers: [{name: x-team, "+condition+"}]"); len(routes) != 1 || !noted(r, "virtual_hosts[0].routes[0]", "cannot be said") {
			t.Errorf("%s became %+v", condition, routes)
		}
	}
	if r, routes := routesOf(t, "grpc: {}"); len(routes) != 2 || !noted(r, "virtual_hosts[0].routes[0].match.grpc", "application/grpc+") {
		t.Errorf("routes %+v, notes %v", routes, r.Notes)
	}
}

// TestNamesOfServersAreNames: a certificate with a URI, as Istio demands it, has no name that could be asked for.
func TestNamesOfServersAreNames(t *testing.T) {
	const path = "clusters[0].transport_socket.typed_config.common_tls_context.validation_context.match_subject_alt_names[0].exact"
	for name, want := range map[string]string{"web.example.com": "web.example.com", "spiffe://shop/ns/web": "", "ops@example.com": ""} {
		r := envoyOf(t, "clusters: [{name: a, lb_policy: RANDOM, transport_socket: {typed_config: {'@type': x.UpstreamTlsContext, common_tls_context: "+
			"{validation_context: {trusted_ca: {filename: /ca}, match_subject_alt_names: [{exact: '"+name+"'}]}}}}}]")
		if got := r.Config.Clusters[0].TLS.ServerName; got != want || want == "" && (!noted(r, path, "") || r.Counts()[Security] == 0) {
			t.Errorf("%s became the server name %q: %v", name, got, r.Notes)
		}
	}
}

// TestFiltersOfOneName: many filters of Envoy have a FilterConfig.
func TestFiltersOfOneName(t *testing.T) {
	for kind, lost := range map[string]bool{
		"envoy.extensions.filters.http.grpc_stats.v3.FilterConfig":            false,
		"envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig": true,
	} {
		r := envoyOf(t, "clusters: [{name: a, lb_policy: RANDOM}]\nlisteners: [{name: l, address: {socket_address: {address: 10.0.0.1, port_value: 80}}, filter_chains: [{filters: "+
			"[{typed_config: {'@type': x.HttpConnectionManager, http_filters: [{typed_config: {'@type': type.googleapis.com/"+kind+"}}]}}]}]}]")
		if got := r.Counts()[Security] > 0; got != lost {
			t.Errorf("%s: lost %v, %v", kind, got, r.Notes)
		}
	}
}

func mongodOf(t *testing.T, text string) *Result {
	t.Helper()
	r, err := MongoDB([]Document{{Name: "mongod.yaml", Text: []byte(text)}}, Options{})
	if err != nil || r.Config == nil {
		t.Fatalf("%v, %+v", err, r)
	}
	return r
}

// TestServersThatDemandAuthentication: what members of a replica set prove to one another, clients must, too.
func TestServersThatDemandAuthentication(t *testing.T) {
	for security, want := range map[string]bool{
		"authorization: enabled": true, "keyFile: /etc/key": true, "clusterAuthMode: x509": true,
		"keyFile: /etc/key, transitionToAuth: true": false, "authorization: disabled": false, "clusterAuthMode: keyFile": false,
	} {
		r := mongodOf(t, "net: {port: 1}\nsecurity: {"+security+"}")
		if got := r.Config.Mongo[0].Authentication; got != want {
			t.Errorf("%s: authentication %v, want %v", security, got, want)
		}
	}
}

// TestBurstsOfServers: a server without the parameter saves up without bound, and the proxy for a second.
func TestBurstsOfServers(t *testing.T) {
	const rate = "setParameter: {ingressRequestRateLimiterEnabled: true, ingressRequestAdmissionRatePerSec: 800"
	if r := mongodOf(t, rate+"}"); !noted(r, "", "ingressRequestAdmissionBurstCapacitySecs") {
		t.Errorf("%v", r.Notes)
	}
	if r := mongodOf(t, rate+", ingressRequestAdmissionBurstCapacitySecs: 2}"); noted(r, "", "BurstCapacitySecs") {
		t.Errorf("%v", r.Notes)
	}
}

// TestFirstHealthCheck: a cluster has the health check that the report says was carried.
func TestFirstHealthCheck(t *testing.T) {
	r, err := Envoy([]Document{{Name: "x", Text: []byte(`{"name": "a", "lb_policy": "ROUND_ROBIN", "health_checks": [
		{"interval": "1s", "http_health_check": {"path": "/first"}}, {"interval": "2s", "tcp_health_check": {}}]}`)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Config.Clusters[0].Health; h == nil || h.Type != "http" || h.Path != "/first" || h.Interval != time.Second {
		t.Errorf("%+v", h)
	}
}
