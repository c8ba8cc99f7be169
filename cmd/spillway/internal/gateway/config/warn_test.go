package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

func TestAllErrorsAreReported(t *testing.T) {
	text := strings.Replace(small, "8000", "http", 1) + "    connect_timeout: -1s\n    rate_limit: {burst_seconds: -5}\n    tune: {latency: 1s}\n    retry: {ratio: 1e9, budget: {capacity: -1}}\n" +
		"routes:\n  - {path: x, criticality: HIGH}\n  - {cluster: none}\n"
	_, err := Parse("proxy.yaml", []byte(text))
	all, ok := errors.AsType[strict.Errors](err)
	if !ok {
		t.Fatalf("%T: %v", err, err)
	}
	var fields []string
	for _, e := range all {
		fields = append(fields, e.Field)
		if e.File != "proxy.yaml" || e.Line == 0 || e.Excerpt == "" {
			t.Errorf("%#v: without a place", e)
		}
	}
	want := []string{ // in the order of the file
		"listeners[0].address", "clusters[0].connect_timeout", "clusters[0].rate_limit.burst_seconds", "clusters[0].tune.limit",
		"clusters[0].retry.budget.capacity", "clusters[0].retry.ratio", "routes[0].path", "routes[0].criticality", "routes[1].cluster",
	}
	if !slices.Equal(fields, want) {
		t.Errorf("got  %q\nwant %q\n%v", fields, want, err)
	}
	many := small + "routes:\n" + strings.Repeat("  - {path: x}\n", 100)
	_, err = Parse("proxy.yaml", []byte(many))
	if all, _ := errors.AsType[strict.Errors](err); len(all) != strict.MaxErrors {
		t.Errorf("%d errors", len(all))
	}
}

func TestWarnings(t *testing.T) {
	const base = `listeners:
  - {name: edge, address: "127.0.0.1:1"}
  - {name: mesh, address: "127.0.0.1:2", boundary: internal, tls: {certificate: c, key: k, client_ca: ca}}
clusters:
  - {name: web, endpoints: ["127.0.0.1:8080"]}
`
	for name, row := range map[string]struct{ from, to, want string }{
		"nothing":        {"", "", ""},
		"peers only":     {"tls: {certificate: c, key: k, client_ca: ca}", "peers: [10.0.0.0/8]", "listeners[1].boundary is internal without tls.client_ca"},
		"optional":       {"client_ca: ca", "client_ca: ca, optional: true", "listeners[1].tls.optional is true at an internal boundary"},
		"no customer":    {"8080\"]", "8080\"], quota: {}", "clusters[0].quota has no effect: no route to web"},
		"one limit":      {"8080\"]", "8080\"], quota: {default_limit: {rate: 20}}", "clusters[0].quota limits all requests together, as if one customer had sent them: no route to web"},
		"customer":       {"8080\"]}", "8080\"], quota: {}}\nroutes:\n  - {customer: {identity: true}}", ""},
		"other cluster":  {"8080\"]}", "8080\"], quota: {}}\n  - {name: b, endpoints: [\"127.0.0.1:3\"]}\nroutes:\n  - {path: /b, cluster: b, customer: {identity: true}}\n  - {cluster: web}", "clusters[0].quota"},
		"exempt prefix":  {"8080\"]}", "8080\"]}\nroutes:\n  - {path: /health/, exempt: true, prefix: true}\n  - {}", "routes[0].prefix exempts all paths below /health/"},
		"idle for ever":  {"8080\"]}", "8080\"]}\nroutes:\n  - {timeout: 2s, stream_idle_timeout: -1s}", "routes[0].timeout ends neither"},
		"idle anywhere":  {"listeners:\n  - {", "routes:\n  - {timeout: 2s}\nlisteners:\n  - {stream_idle_timeout: -1s, ", "routes[0].timeout ends neither"},
		"idle elsewhere": {"listeners:\n  - {", "routes:\n  - {listeners: [mesh], timeout: 2s}\n  - {}\nlisteners:\n  - {stream_idle_timeout: -1s, ", ""},
		"idle and ends":  {"8080\"]}", "8080\"]}\nroutes:\n  - {timeout: 2s}", ""},
		"exempt path":    {"8080\"]}", "8080\"]}\nroutes:\n  - {path: /health, exempt: true}\n  - {path: /health}\n  - {}", ""},
		"catch-all":      {"8080\"]}", "8080\"]}\nroutes:\n  - {}\n  - {path: /api/}", "routes[1] is never used"},
		"one listener":   {"8080\"]}", "8080\"]}\nroutes:\n  - {listeners: [mesh]}\n  - {path: /api/}", ""},
		"wider host":     {"8080\"]}", "8080\"]}\nroutes:\n  - {host: \"*.example.com\"}\n  - {host: API.example.com}", "routes[1] is never used"},
		"lower case":     {"8080\"]}", "8080\"]}\nroutes:\n  - {methods: [GET, get, MyMethod]}\n  - {}", `routes[0].methods[1] is "get", which is not GET`},
		"no rate":        {"8080\"]", "8080\"], rate_limit: {burst_seconds: 5}", "clusters[0].rate_limit has no effect: rate is not given"},
		"a rate":         {"8080\"]", "8080\"], rate_limit: {rate: 5, burst_seconds: 5}", ""},
		"no conn rate":   {"127.0.0.1:1\"", "127.0.0.1:1\", connection_rate: {mode: enforce}", "listeners[0].connection_rate has no effect: rate is not given"},
		"unused engine":  {"clusters:", "quotas: {e: {domain: d, redis: {addresses: [\"a:1\"]}}}\nclusters:", "quotas.e has no effect: no quota has engine: e"},
		"unused xds":     {"clusters:", "xds: {address: \"a:1\", node: {id: x}}\nclusters:", "xds has no effect: no cluster has xds"},
		"used xds":       {"8080\"]}", "8080\"], xds: {}}\nxds: {address: \"a:1\", node: {id: x}}", ""},
		"no bound":       {"8080\"]", "8080\"], shed: {mode: off}, inflight: {max_in_flight: -1}", "clusters[0] has no limit, and routes[0] no timeout: if web gets slow"},
		"no second one":  {"8080\"]}", "8080\"], shed: {mode: off}, inflight: {max_in_flight: -1}}\nroutes:\n  - {path: /healthz, exempt: true}\n  - {path: /a, timeout: 1s}\n  - {}", "clusters[0] has no limit, and routes[2] no timeout"},
		"all off":        {"listeners:", "mode: off\nlisteners:", "clusters[0] has no limit"},
		"a timeout":      {"8080\"]}", "8080\"], shed: {mode: off}, inflight: {max_in_flight: -1}}\nroutes:\n  - {timeout: 1s}", ""},
		"default":        {"8080\"]", "8080\"], shed: {mode: off}", ""},
		"shed":           {"8080\"]", "8080\"], inflight: {mode: off}", ""},
		"in flight":      {"8080\"]", "8080\"], shed: {mode: off}, inflight: {max_in_flight: 5}", ""},
		"limited rate":   {"8080\"]", "8080\"], shed: {mode: off}, inflight: {max_in_flight: -1}, rate_limit: {rate: 5}", ""},
		"slow answers":   {"8080\"]", "8080\"], shed: {mode: off}, inflight: {max_in_flight: -1}, response_timeout: 5s", ""},
		"batch":          {"8080\"]", "8080\"], shed: {mode: off}, inflight: {max_in_flight: -1}, batch: {}", ""},
		"mongo": {"clusters:", "mongo:\n  - {address: \"127.0.0.1:5\", endpoints: [\"127.0.0.1:6\"], quota: {}, classes: [{criticality: SHEDDABLE}]}\nclusters:",
			"mongo[0].quota has no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			w := parse(t, strings.Replace(base, row.from, row.to, 1)).Warnings()
			if row.want == "" && len(w) > 0 || row.want != "" && (len(w) != 1 || !strings.HasPrefix(w[0].Error(), row.want)) {
				t.Errorf("got %v, want %s", w, row.want)
			}
		})
	}
}
