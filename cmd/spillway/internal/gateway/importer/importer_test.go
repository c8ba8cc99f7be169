package importer

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

var update = flag.Bool("update", false, "write the golden files anew")

func read(t *testing.T, names ...string) (docs []Document) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, Document{Name: name, Text: text})
	}
	return docs
}

// written returns a result as the program prints it.
func written(t *testing.T, r *Result) string {
	t.Helper()
	text, err := config.Format(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	again, err := config.Parse("imported.yaml", text)
	if err != nil {
		t.Fatalf("what was written cannot be read: %v", err)
	}
	if d := config.Diff(r.Config, again); len(d) > 0 {
		t.Fatalf("what was written is something else: %q", d)
	}
	var b strings.Builder
	b.Write(text)
	b.WriteString("---\n")
	for _, c := range r.Carried {
		fmt.Fprintf(&b, "carried: %s: %s\n", c.Path, c.To)
	}
	for _, line := range r.Lines() {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	for name, run := range map[string]func() (*Result, error){
		"grpc":        func() (*Result, error) { return GRPC(read(t, "grpc.json")[0], Options{Upstream: "127.0.0.1:50051"}) },
		"envoy":       func() (*Result, error) { return Envoy(read(t, "envoy.yaml"), Options{}) },
		"front-proxy": func() (*Result, error) { return Envoy(read(t, "front-proxy.yaml"), Options{}) },
		"tls-edge":    func() (*Result, error) { return Envoy(read(t, "tls-edge.yaml"), Options{}) },
		"rate-limit":  func() (*Result, error) { return Envoy(read(t, "rate-limit.yaml"), Options{}) },
		"outliers":    func() (*Result, error) { return Envoy(read(t, "outliers.yaml"), Options{}) },
		"grpc-retry": func() (*Result, error) {
			return GRPC(read(t, "grpc-retry.json")[0], Options{Upstream: "127.0.0.1:50051"})
		},
		"mongod":     func() (*Result, error) { return MongoDB(read(t, "mongod.yaml"), Options{}) },
		"connection": func() (*Result, error) { return MongoDB(read(t, "connection.txt"), Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			r, err := run()
			if err != nil {
				t.Fatal(err)
			}
			got, file := written(t, r), filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			if strings.Contains(got, "do-not-show-this") {
				t.Error("a secret is shown")
			}
		})
	}
}

// The narrowest virtual host comes first, as Envoy has it, and routes within a listener
// are for that one.
func TestEnvoyRoutesGoWhereTheyDoInEnvoy(t *testing.T) {
	hosts := func(hosts ...string) string {
		var all []string
		for _, h := range hosts {
			all = append(all, fmt.Sprintf(`{"domains": [%q], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": %q}}]}`, h, "to "+h))
		}
		return `{"virtual_hosts": [` + strings.Join(all, ",") + `]}`
	}
	listener := func(address, routes string) string {
		return fmt.Sprintf(`{"address": {"socket_address": {"address": %q, "port_value": 80}}, "filter_chains": [{"filters": [{"route_config": %s}]}]}`, address, routes)
	}
	several, wider := "note: there are several route configurations", "note: a request that no route of its virtual host matches"
	for name, row := range map[string]struct {
		text  string
		want  []string // listener and cluster of each route
		notes []string
	}{
		"narrowest first": {
			hosts("*", "*.example.com", "a.example.com", "*.b.example.com", "c.example.com"),
			[]string{" to a.example.com", " to c.example.com", " to *.b.example.com", " to *.example.com", " to *"}, []string{wider},
		},
		"one listener":  {"[" + listener("10.0.0.1", hosts("*")) + "]", []string{" to *"}, nil},
		"two listeners": {"[" + listener("10.0.0.1", hosts("a")) + "," + listener("10.0.0.2", hosts("b")) + "]", []string{"10.0.0.1:80 to a", "10.0.0.2:80 to b"}, nil},
		"a listener that is none": {
			"[" + listener("", hosts("a")) + "," + listener("10.0.0.2", hosts("b")) + "]", []string{" to b"}, nil,
		},
		"beside a listener": {
			"[" + listener("10.0.0.1", hosts("a")) + "," + hosts("b") + "]", []string{" to a", " to b"}, []string{several},
		},
		"beside two listeners": {
			"[" + listener("10.0.0.1", hosts("a")) + "," + listener("10.0.0.2", hosts("b")) + "," + hosts("c") + "]",
			[]string{"10.0.0.1:80 to a", "10.0.0.2:80 to b", " to c"}, []string{several},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Envoy([]Document{{Name: "x", Text: []byte(row.text)}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, route := range r.Config.Routes {
				got = append(got, strings.Join(route.Listeners, ",")+" "+route.Cluster)
			}
			text := written(t, r)
			if !slices.Equal(got, row.want) {
				t.Errorf("%q, want %q:\n%s", got, row.want, text)
			}
			for _, note := range []string{several, wider} {
				if strings.Contains(text, note) != slices.Contains(row.notes, note) {
					t.Errorf("%q is said: %v", note, !slices.Contains(row.notes, note))
				}
			}
		})
	}
}

// Documents may begin with the mark that some editors write.
func TestMarkedDocuments(t *testing.T) {
	marked := func(text string) Document { return Document{Name: "x", Text: []byte("\ufeff" + text)} }
	for name, run := range map[string]func() (*Result, error){
		"grpc":  func() (*Result, error) { return GRPC(marked(`{"methodConfig": []}`), Options{}) },
		"envoy": func() (*Result, error) { return Envoy([]Document{marked("static_resources: {}")}, Options{}) },
	} {
		if _, err := run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// leavesOf finds all leaves of a document, in another way than the importer.
func leavesOf(v any, path []string, all map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			leavesOf(x, append(slices.Clip(path), key), all)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, x := range v {
			leavesOf(x, append(slices.Clip(path), fmt.Sprintf("[%d]", i)), all)
		}
		if len(v) > 0 {
			return
		}
	}
	if len(path) > 0 { // a document may say nothing
		all[strings.Join(path, "\x00")] = true
	}
}

// complete fails t unless each leaf was either carried or reported, once.
func complete(t *testing.T, leaves int, r *Result) {
	t.Helper()
	seen := make(map[string]bool)
	for _, c := range r.Carried {
		if seen[c.Path] {
			t.Errorf("%s was carried twice", c.Path)
		}
		seen[c.Path] = true
	}
	for _, n := range r.Notes {
		if n.Path == "" {
			continue
		}
		if n.Left && seen[n.Path] {
			t.Errorf("%s was carried and left out, or left out twice", n.Path)
		}
		seen[n.Path] = true
		if n.Why == "" || n.Value == "" {
			t.Errorf("a note that says nothing: %+v", n)
		}
	}
	if len(seen) != leaves {
		t.Errorf("%d leaves were accounted for, there are %d", len(seen), leaves)
	}
}

func TestEachLeafIsAccountedFor(t *testing.T) {
	count := func(text []byte) int {
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		all := make(map[string]bool)
		leavesOf(v, nil, all)
		return len(all)
	}
	grpc, envoy := read(t, "grpc.json")[0], read(t, "envoy.yaml")[0]
	r, err := GRPC(grpc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	complete(t, count(grpc.Text), r)
	if r, err = Envoy([]Document{envoy}, Options{}); err != nil {
		t.Fatal(err)
	}
	complete(t, count(envoy.Text), r)
	twice := []Document{envoy, {Name: "copy.yaml", Text: envoy.Text}}
	if r, err = Envoy(twice, Options{}); err != nil {
		t.Fatal(err)
	}
	complete(t, 2*count(envoy.Text), r)
}

// TestMeaning looks at what matters most of what was imported.
func TestMeaning(t *testing.T) {
	r, err := GRPC(read(t, "grpc.json")[0], Options{})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, x := range r.Config.Routes {
		paths = append(paths, x.Path)
	}
	if want := []string{"/shop.Cart/Get", "/shop.Pay/Charge", "/shop.Stock/", "/shop.Cart/", ""}; !slices.Equal(paths, want) {
		t.Errorf("routes %q, want %q", paths, want)
	}
	if r, err = Envoy(read(t, "envoy.yaml"), Options{}); err != nil {
		t.Fatal(err)
	}
	names := make(map[string]*config.Cluster)
	for i := range r.Config.Clusters {
		names[r.Config.Clusters[i].Name] = &r.Config.Clusters[i]
	}
	web, retried := names["web"], names["web~2"]
	if web == nil || retried == nil || web.Retry.MaxAttempts != 3 || retried.Retry.MaxAttempts != 2 || web.Inflight.MaxInFlight != 200 {
		t.Errorf("%+v, %+v", web, retried)
	}
	if jobs := names["jobs"]; jobs.Retry.Mode != "off" || jobs.Inflight.MaxInFlight != -1 || jobs.Protocol != "http2" || jobs.TLS.CA != "/etc/tls/ca.pem" {
		t.Errorf("%+v", jobs)
	}
	for _, x := range r.Config.Routes {
		if x.Path == "/r.*" || x.Path == "/old" {
			t.Errorf("%+v was imported", x)
		}
	}
}

// TestDumps imports what an Envoy that runs says of itself, in the names of JSON.
func TestDumps(t *testing.T) {
	r, err := Envoy([]Document{{Name: "dump.json", Text: []byte(`{"configs": [
		{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "dynamicActiveClusters": [{"versionInfo": "7", "cluster": {
			"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a", "connectTimeout": "0.500s",
			"circuitBreakers": {"thresholds": [{"maxRequests": 9, "retryBudget": {"budgetPercent": {"value": 30}}}]},
			"loadAssignment": {"clusterName": "a", "endpoints": [{"lbEndpoints": [
				{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 80}}}}]}]}}}]},
		{"dynamicRouteConfigs": [{"routeConfig": {"name": "r", "virtualHosts": [{"name": "v", "domains": ["*"], "routes": [
			{"match": {"path": "/p", "caseSensitive": false}, "route": {"cluster": "a"}},
			{"match": {"prefix": "/q"}, "route": {"cluster": "b", "timeout": "1s", "retryPolicy": {"retryOn": "reset", "numRetries": 2}}}]}]}}]}]}`)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, b, routes := r.Config.Clusters[1], r.Config.Clusters[0], r.Config.Routes
	if a.Name != "a" || a.Endpoints[0] != "10.0.0.1:80" || a.Inflight.MaxInFlight != 9 || a.Retry.Ratio != 0.3 || a.ConnectTimeout != 500e6 {
		t.Errorf("%+v", a)
	}
	if b.Name != "b" || b.Retry.MaxAttempts != 3 || b.Endpoints[0] != DefaultUpstream {
		t.Errorf("%+v", b)
	}
	if len(routes) != 1 || routes[0].Path != "/q" || routes[0].Cluster != "b" { // the case of the other one cannot be ignored
		t.Errorf("%+v", routes)
	}
}

func TestWrongDocuments(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1, "a": 2}`: "twice",
		"a: [":             "x:1: ",
		"a: 1\n---\nb: 2":  "a second document",
		"a: &a [*a]":       "deep",
		"[1]":              "must be an object",
		"1":                "must be an object",
	} {
		if _, err := GRPC(Document{Name: "x", Text: []byte(text)}, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %s", text, err, want)
		}
	}
	if _, err := Envoy([]Document{{Name: "x"}, {Name: "x"}}, Options{}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
	if _, err := Envoy([]Document{{Name: "x", Text: make([]byte, maxSize+1)}}, Options{}); err == nil {
		t.Error("a document that is too long was read")
	}
}

// accounted fails t unless the import of a fuzzed document reports each of its fields
// and returns a valid configuration.
func accounted(t *testing.T, text []byte, r *Result, err error) {
	t.Helper()
	if err != nil {
		if strings.Contains(err.Error(), "no good configuration") {
			t.Fatal(err)
		}
		return
	}
	if json.Valid(text) {
		var v any
		_ = json.Unmarshal(text, &v)
		all := make(map[string]bool)
		leavesOf(v, nil, all)
		complete(t, len(all), r)
	}
	if r.Config == nil && r.Err() == nil {
		t.Fatal("no configuration and no error")
	}
	if r.Config != nil {
		written(t, r)
	}
}

func FuzzGRPC(f *testing.F) {
	text, _ := os.ReadFile("testdata/grpc.json")
	f.Add(text)
	f.Add([]byte(`{"methodConfig":[{"name":[{}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := GRPC(Document{Name: "x", Text: text}, Options{})
		accounted(t, text, r, err)
	})
}

func FuzzEnvoy(f *testing.F) {
	text, err := os.ReadFile("testdata/envoy.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		f.Fatal(err)
	}
	asJSON, err := json.Marshal(value)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(asJSON)
	f.Add([]byte(`{"virtual_hosts":[{"domains":["*"],"routes":[{"route":{"cluster":"a"}}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Envoy([]Document{{Name: "x", Text: text}}, Options{})
		accounted(t, text, r, err)
	})
}

// TestNoSecretIsShown imports configurations of Envoy with a secret in each possible
// place, in both spellings, and searches for it in the result and the error.
func TestNoSecretIsShown(t *testing.T) {
	const canary = "c4nary"
	headers := func(field, header string) string {
		return fmt.Sprintf(`%q: [{"header": {"key": "x-auth", %q: %q}, "append": true}]`, field, header, canary)
	}
	added := headers("request_headers_to_add", "value") + "," + headers("responseHeadersToAdd", "rawValue")
	secret := `{"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "name": "` + canary + `",
		"unknown_field": {"deep": ["` + canary + `", {"x": "` + canary + `"}]}, "tlsCertificate": {"privateKey": {"inlineString": "` + canary + `"}}}`
	for name, text := range map[string]string{
		"virtual host":    `{"virtual_hosts": [{"domains": ["*"], ` + added + `, "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "a"}}]}]}`,
		"route":           `{"virtualHosts": [{"domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "a"}, ` + added + `}]}]}`,
		"weighted":        `{"virtual_hosts": [{"domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"weightedClusters": {"clusters": [{"name": "a", "weight": 1, ` + added + `}]}}}]}]}`,
		"table":           `{` + headers("requestHeadersToAdd", "value") + `, "virtual_hosts": [{"domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "a"}}]}]}`,
		"typed secret":    `{"resources": [` + secret + `], "static_resources": {"clusters": [{"name": "a", "connect_timeout": "1s"}]}}`,
		"in typed config": `{"static_resources": {"clusters": [{"name": "a", "transport_socket": {"name": "tls", "typed_config": {"nested": ` + secret + `}}}]}}`,
		"list of secrets": `{"static_resources": {"secrets": [` + secret + `], "clusters": [{"name": "a"}]}}`,
		"match of header": `{"virtual_hosts": [{"domains": ["*"], "routes": [{"match": {"prefix": "/", "headers": [{"name": "x", "stringMatch": {"safeRegex": {"regex": "` + canary + `"}}}]}, "route": {"cluster": "a"}}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Envoy([]Document{{Name: "x", Text: []byte(text)}}, Options{})
			if shown := fmt.Sprintf("%+v %v", r, err); strings.Contains(shown, canary) {
				t.Errorf("a secret is shown: %s", shown)
			} else if r != nil && !strings.Contains(shown, "(not shown)") {
				t.Errorf("the secret was not seen: %s", shown)
			}
		})
	}
}

// TestRequestIDs: what Envoy says of the ids of requests is imported, or is what the proxy always does.
func TestRequestIDs(t *testing.T) {
	for option, row := range map[string]struct{ keeps, noted bool }{
		"":                                         {},
		"preserve_external_request_id: true":       {keeps: true},
		"preserve_external_request_id: false":      {},
		"generate_request_id: true":                {},
		"generate_request_id: false":               {noted: true},
		"always_set_request_id_in_response: true":  {},
		"always_set_request_id_in_response: false": {noted: true},
		"preserveExternalRequestId: true":          {keeps: true},
	} {
		text := `
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: 10000}}
    filter_chains:
    - filters:
      - typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          ` + option + `
          route_config: {virtual_hosts: [{domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: web}}]}]}
  clusters:
  - {name: web, load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8080}}}}]}]}}
`
		r, err := Envoy([]Document{{Name: "envoy.yaml", Text: []byte(text)}}, Options{})
		if err != nil {
			t.Fatalf("%s: %v", option, err)
		}
		name, _, _ := strings.Cut(option, ":")
		noted := slices.ContainsFunc(r.Notes, func(n document.Note) bool { return strings.HasSuffix(n.Path, name) })
		carried := slices.ContainsFunc(r.Carried, func(c document.Carried) bool { return strings.HasSuffix(c.Path, name) })
		if r.Config.Listeners[0].PreserveRequestID != row.keeps || option != "" && (noted != row.noted || !carried) {
			t.Errorf("%s: kept %v, noted %v, carried %v", option, r.Config.Listeners[0].PreserveRequestID, noted, carried)
		}
	}
}
