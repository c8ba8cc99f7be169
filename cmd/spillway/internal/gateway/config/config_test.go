package config

import (
	_ "embed"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

const small = `listeners:
  - address: 127.0.0.1:8000
clusters:
  - name: web
    endpoints: [127.0.0.1:8080]
`

//go:embed testdata/good/full.yaml
var full string

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("proxy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGoodFiles(t *testing.T) {
	c := parse(t, full)
	if c.Clusters[0].Throttle.K != 1.5 || c.Clusters[1].Batch.MaxWait != 2*time.Minute || c.Routes[1].Headers["X-Debug"] != "*" {
		t.Errorf("read: %+v", c)
	}
	in := c.Ingress(&c.Listeners[1], &c.Clusters[0])
	if in.RateLimitMode != spillway.ModeObserve || in.ShedMode != spillway.ModeEnforce || in.Trust.Boundary != ingress.Internal ||
		in.Trust.MaxByIdentity["uri:spiffe://shop/cart"] != spillway.CriticalPlus || in.Trust.DefaultMax != spillway.Sheddable || in.Quota.Allocator == nil {
		t.Errorf("ingress: %+v", in)
	}
	if in := c.Ingress(&c.Listeners[0], &c.Clusters[1]); in.ShedMode != spillway.ModeOff {
		t.Errorf("a batch cluster sheds: %v", in.ShedMode)
	}
	out, err := c.Egress(&c.Clusters[0])
	if err != nil || out.MaxInFlight != 200 || out.ThrottleMode != spillway.ModeEnforce {
		t.Errorf("egress: %+v, %v", out, err)
	}
	d := parse(t, small).Defaulted()
	if d.Mode != "observe" || len(d.Routes) != 1 || d.Routes[0].Cluster != "web" || d.Listeners[0].Name != "127.0.0.1:8000" {
		t.Errorf("defaults: %+v", d)
	}
	if d.Ingress(&d.Listeners[0], &d.Clusters[0]).ShedMode != spillway.ModeObserve || d.Retries(&d.Clusters[0]) {
		t.Error("without a mode, something is enforced")
	}
}

// TestCapsOfRoutes: the limit key of a route is its cluster, or its cluster and its key.
func TestCapsOfRoutes(t *testing.T) {
	caps := `max_in_flight_by_key: {"web: streams": 5, web: 100}`
	d := parse(t, strings.NewReplacer("max_wait: 20ms", caps, "    cluster: web\n    timeout", "    cluster: web\n    key: streams\n    timeout").Replace(full))
	want := map[string]int{"web: streams": 5, "web": 100}
	if got := d.Ingress(&d.Listeners[0], &d.Clusters[0]).Concurrency.MaxInFlightByKey; !maps.Equal(got, want) {
		t.Errorf("caps %v, want %v", got, want)
	}
}

// TestWrongFiles has for each mistake what the error must say.
func TestWrongFiles(t *testing.T) {
	for name, row := range map[string]struct{ from, to, want string }{
		"unknown field":       {"throttle: {k: 1.5}", "throtle: {k: 1.5}", `proxy.yaml:25: clusters[0].throtle is no field here; did you mean throttle?`},
		"wrong type":          {"rate: 1000", "rate: many", "proxy.yaml:19: clusters[0].rate_limit.rate"},
		"wrong duration":      {"max_wait: 20ms", "max_wait: soon", `proxy.yaml:24: clusters[0].shed.max_wait is "soon": must be a length of time`},
		"wrong cap":           {"max_wait: 20ms", "max_in_flight_by_key: {web: 0}", `proxy.yaml:24: clusters[0].shed.max_in_flight_by_key.web is 0, must be 1 to 2147483647`},
		"cap of no route":     {"max_wait: 20ms", "max_in_flight_by_key: {jobs: 5}", `clusters[0].shed.max_in_flight_by_key["jobs"] is not a key of the routes to web, must be one of ["web"]: give a route its own key to cap it apart`},
		"wrong mode":          {"mode: observe", "mode: on", `proxy.yaml:19: clusters[0].rate_limit.mode is "on", must be off, observe or enforce`},
		"wrong value":         {"k: 1.5", "k: 0.5", "proxy.yaml:25: clusters[0].throttle.k is 0.5, must be above 1"},
		"wrong endpoint":      {`"127.0.0.1:8081"`, `"127.0.0.1"`, `proxy.yaml:17: clusters[0].endpoints[1] is "127.0.0.1", must be a host and a port`},
		"wrong port":          {`"127.0.0.1:8081"`, `"127.0.0.1:0"`, `clusters[0].endpoints[1] is "127.0.0.1:0"`},
		"endpoint twice":      {`"127.0.0.1:8081"`, `"127.0.0.1:8080"`, `proxy.yaml:17: clusters[0].endpoints[1] is "127.0.0.1:8080", as clusters[0].endpoints[0] is`},
		"wrong class":         {"others: SHEDDABLE", "others: LOW", `listeners[1].others is "LOW"`},
		"wrong rate":          {"rate: 500", "rate: 5e9", "listeners[0].connection_rate.rate is 5e+09"},
		"wrong quota":         {"weight: 2", "weight: -2", `clusters[0].quota.customers.acme.weight is -2`},
		"wrong network":       {"10.0.0.0/8", "10.0.0.0", `listeners[0].connection_rate.exempt[0] is "10.0.0.0"`},
		"wrong batch":         {"connections: 8", "connections: 1", "clusters[1].batch.connections is 1, must be 2"},
		"wrong retry":         {"ratio: 0.05", "ratio: 2000000000", "clusters[0].retry.ratio"},
		"unknown cluster":     {"cluster: jobs", "cluster: job", `routes[0].cluster is "job", which no cluster is called`},
		"unknown listener":    {"[mesh]", "[mash]", `routes[0].listeners[0] is "mash"`},
		"wrong check":         {"path: /ready", "path: ready", `clusters[1].health.path is "ready", must begin with /`},
		"wrong kind of check": {"path: /ready", "type: udp", `clusters[1].health.type is "udp", must be http or grpc or tcp`},
		"no such check":       {"path: /ready", "type: tcp, path: /", `clusters[1].health.path is given, but type is tcp`},
		"wrong interval":      {"interval: 2s", "interval: 1ms", `clusters[1].health.interval is 1ms, must be 10ms to 24h`},
		"wrong threshold":     {"unhealthy_threshold: 2", "unhealthy_threshold: -1", `clusters[1].health.unhealthy_threshold is -1, must be 1 or more`},
		"wrong path":          {"path: /jobs/", "path: jobs/", `routes[0].path is "jobs/", must begin with /`},
		"no certificate":      {"certificate: cert.pem, key: key.pem}\n    max_body", "key: key.pem}\n    max_body", "listeners[0].tls.certificate is missing"},
		"optional":            {"key: key.pem}\n    max_body", "key: key.pem, optional: true}\n    max_body", "listeners[0].tls.optional is true, but there is no client_ca"},
		"unproven callers":    {", client_ca: ca.pem", "", "listeners[1].callers is given, but without tls.client_ca"},
		"classes at an edge":  {"boundary: internal", "boundary: edge", "listeners[1].others is given, but at an edge no class that a client says is believed"},
		"callers at an edge":  {"boundary: internal\n    tls: {certificate: cert.pem, key: key.pem, client_ca: ca.pem}\n    callers: {\"uri:spiffe://shop/cart\": CRITICAL_PLUS}\n    others: SHEDDABLE", "tls: {certificate: cert.pem, key: key.pem, client_ca: ca.pem}\n    callers: {\"uri:spiffe://shop/cart\": CRITICAL_PLUS}", "listeners[1].callers is given, but at an edge"},
		"mapped network":      {"10.0.0.0/8", "\"::ffff:10.0.0.0/104\"", `listeners[0].connection_rate.exempt[0] is "::ffff:10.0.0.0/104", must be a network`},
		"percentage":          {"max_wait: 20ms", "load: {targets: {cpu: 70}}", "proxy.yaml:24: clusters[0].shed.load.targets.cpu is 70, must be 0 to 1"},
		"percentages":         {"max_wait: 20ms", "load: {thresholds: {memory: {sheddable: 70, sheddable_plus: 75, critical: 80, critical_plus: 90}}}", "proxy.yaml:24: clusters[0].shed.load.thresholds.memory is [70 75 80 90], must be of numbers of 0 to 1"},
		"same name":           {"name: mesh", "name: public", `listeners[1].name is "public", as that of listeners[0] is`},
		"no cluster":          {"  - cluster: web", "  - timeout: 1s", "routes[2].cluster is missing"},
		"negative":            {"timeout: 2s", "timeout: -2s", "routes[1].timeout is -2s, must not be negative"},
		"no YAML":             {"mode: enforce", "mode: [", "proxy.yaml:"},
		"exactly nothing":     {"- cluster: web", "- {cluster: web, exact: true}", "routes[2].exact is true, but there is no path"},
		"rare rejections":     {"drain_timeout: 10s", "log: {rejections_per_second: 1e-7}", `proxy.yaml:2: log.rejections_per_second is 1e-07, must be at least 1/86400`},
		"rare access lines":   {"drain_timeout: 10s", "log: {access: {lines_per_second: 1e-7}}", `proxy.yaml:2: log.access.lines_per_second is 1e-07, must be at least 1/86400`},
		"TLS over a socket":   {"drain_timeout: 10s", "admin: {address: 'unix:/run/s', tls: {certificate: c, key: k}}", "proxy.yaml:2: admin.tls is given, but a Unix socket is in the clear"},
		"wrong log format":    {"drain_timeout: 10s", "log: {format: xml}", `proxy.yaml:2: log.format is "xml", must be text or json`},
		"wrong log level":     {"drain_timeout: 10s", "log: {level: all}", `log.level is "all", must be debug or info or warn or error`},
		"wrong log rate":      {"drain_timeout: 10s", "log: {rejections_per_second: .nan}", `log.rejections_per_second is NaN, must be at most 1e6`},
		"empty":               {full, "", `proxy.yaml:1: listeners is missing`},
		"header with a space": {"X-Team", "X Team", `routes[0].customer.header is "X Team"`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(full, row.from, row.to, 1)
			if text == full {
				t.Fatalf("nothing to replace: %s", row.from)
			}
			c, err := Parse("proxy.yaml", []byte(text))
			if err == nil {
				t.Fatalf("good: %+v", c)
			}
			if !strings.Contains(err.Error(), row.want) {
				t.Errorf("error: %v\nwant:  %s", err, row.want)
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Line == 0 || !strings.Contains(e.Excerpt, ">") {
				t.Errorf("an error without line or excerpt: %#v", err)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	a := parse(t, full)
	if lines := Diff(a, parse(t, full)); len(lines) != 0 {
		t.Errorf("same files differ: %q", lines)
	}
	b := parse(t, strings.NewReplacer("k: 1.5", "k: 3", "timeout: 2s", "timeout: 5s", "    others: SHEDDABLE\n", "", "endpoints: [\"jobs", "max_connections: 7\n    endpoints: [\"jobs").Replace(full))
	want := []string{
		"clusters[jobs].max_connections: set to 7",
		"clusters[web].throttle.k: 1.5 is now 3",
		"listeners[mesh].others: removed, was SHEDDABLE",
		"routes[1].timeout: 2s is now 5s",
	}
	if got := Diff(a, b); !reflect.DeepEqual(got, want) {
		t.Errorf("difference:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestDiffKeepsSecrets changes, adds and removes values that may be secret.
func TestDiffKeepsSecrets(t *testing.T) {
	with := func(headers string) *Config {
		return parse(t, small+"routes:\n  - headers: {"+headers+"}\n")
	}
	for _, row := range []struct{ a, b, want string }{
		{"X-Key: hidden1", "X-Key: hidden2", "routes[0].headers.X-Key: is another one now"},
		{"X-Key: hidden1", "", "routes[0].headers.X-Key: removed, was what is not shown"},
		{"", "X-Key: hidden1", "routes[0].headers.X-Key: set to what is not shown"},
		{"X-Key: hidden1", "X-Key: hidden1", ""},
	} {
		if got := strings.Join(Diff(with(row.a), with(row.b)), "\n"); got != row.want {
			t.Errorf("%q to %q: %q, want %q", row.a, row.b, got, row.want)
		}
	}
}

func TestOpen(t *testing.T) {
	name := filepath.Join(t.TempDir(), "proxy.yaml")
	if _, err := Open(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(name, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := ForUpstream("127.0.0.1:0", "127.0.0.1:8080").Check(); err != nil {
		t.Error(err)
	}
	if got := parse(t, full).Files(); len(got) != 6 || len(c.Files()) != 0 {
		t.Errorf("files: %q", got)
	}
}

// FuzzParse looks for files that break the reader, and for such as are found good
// and are then not.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(full))
	f.Add([]byte("mode: [\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("clusters:\n  - endpoints: !tagged "))
	f.Add([]byte("listeners: [{address: 1}]\nclusters: {}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("f", text)
		if err != nil {
			if e, ok := errors.AsType[*Error](err); !ok || e.Problem == "" {
				t.Fatalf("an error that says nothing: %#v", err)
			}
			return
		}
		d := c.Defaulted()
		if err := d.Check(); err != nil {
			t.Fatalf("good, but not with its defaults: %v", err)
		}
		for i := range d.Clusters {
			if _, err := d.Egress(&d.Clusters[i]); err != nil {
				t.Fatalf("good, but cannot be used: %v", err)
			}
			s, err := ingress.New(d.Ingress(&d.Listeners[0], &d.Clusters[i]))
			if err != nil {
				t.Fatalf("good, but cannot be used: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		out, err := yaml.Marshal(c)
		if err == nil && len(Diff(c, c)) != 0 {
			t.Fatalf("differs from itself:\n%s", out)
		}
	})
}
