//go:build unix

package main

import (
	"encoding/json"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/explain"
	"github.com/seed90641741/spillway/internal/freeport"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares what was printed with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
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
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

const shop = "testdata/proxy/shop.yaml"

func TestExplain(t *testing.T) {
	for name, args := range map[string][]string{
		"edge": {
			"--open-files", "1000", "-X", "PUT", "--body", "200", "-H", "x-request-criticality: CRITICAL_PLUS", "-H", "X-Envoy-Expected-Rq-Timeout-Ms: 1500",
			"-H", "X-Envoy-Attempt-Count: 3", "-H", "X-Customer: acme", "-H", "X-Forwarded-For: 203.0.113.7", "https://shop.example.com/cart?id=7",
		},
		"batch":   {"--listener", "mesh", "--client", "uri:spiffe://shop/cart", "-H", "x-request-criticality: SHEDDABLE", "/jobs/a"},
		"nowhere": {"--listener", "mesh", "--client", "cn:nobody", "-H", "Host: other.test", "/jobs"},
		"host":    {"-H", "X-Debug: yes", "-H", "baggage: criticality=sheddable,a=b", "https://www.example.com/"},
		"grpc":    {"-X", "POST", "-H", "content-type: application/grpc", "-H", "grpc-timeout: 90S", "-H", "te: trailers", "/shop.Cart/Get"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, append([]string{"explain", "--open-files=1000000", shop}, args...)...)
			if status := r.status(t); status != exitOK {
				t.Fatalf("status %d: %s", status, r.stderr.String())
			}
			golden(t, "explain/"+name+".txt", r.stdout.String())
			asJSON := start(t, append([]string{"explain", "--open-files=1000000", "--output=json", shop}, args...)...)
			if status := asJSON.status(t); status != exitOK {
				t.Fatal(asJSON.stderr.String())
			}
			var e explain.Explanation
			d := json.NewDecoder(&asJSON.stdout)
			d.DisallowUnknownFields()
			if err := d.Decode(&e); err != nil {
				t.Fatal(err)
			}
			var again strings.Builder
			if err := e.Write(&again); err != nil {
				t.Fatal(err)
			}
			if again.String() != r.stdout.String() {
				t.Errorf("the JSON says something else:\n%s", again.String())
			}
		})
	}
}

// TestExplainTargets: the target of a request is explained as a client writes it, byte for byte, with the answer that it gets.
func TestExplainTargets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "paths.yaml")
	const text = `listeners: [{address: "127.0.0.1:0"}]
clusters: [{name: web, endpoints: ["127.0.0.1:9"]}]
routes: [{path: /healthz, exempt: true}, {path: /public/}, {path: /report}, {}]
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string][]string{
		"//report":                            {"GET //report of localhost", "the path is ambiguous", "no route is used: the answer is 400 (gRPC: INVALID_ARGUMENT)\n"},
		"//healthz":                           {"GET //healthz of localhost", "routes[3]  MATCHES"},
		"//shop.example/x":                    {"GET //shop.example/x of localhost"},
		`/a\..\report`:                        {`GET /a\..\report of localhost`, "the path is ambiguous", "no route is used: the answer is 400 (gRPC: INVALID_ARGUMENT)\n"},
		"/public/../admin":                    {"GET /public/../admin of localhost", "no route is used: the answer is 400 (gRPC: INVALID_ARGUMENT)\n"},
		"/a#b":                                {"GET /a#b of localhost", "answer: 400"},
		"/a?b=c#d":                            {"GET /a?b=c#d of localhost", "answer: 400"},
		"?a=b":                                {"GET /?a=b of localhost", "routes[3]  MATCHES"},
		"http://shop.example":                 {"GET / of shop.example"},
		"http://shop.example?a=b":             {"GET /?a=b of shop.example"},
		"https://shop.example//report?a=/#up": {"GET //report?a=/ of shop.example", "no route is used: the answer is 400 (gRPC: INVALID_ARGUMENT)\n"},
		"http://[::1]:8000/report":            {"GET /report of [::1]:8000", "routes[2]  MATCHES"},
	} {
		status, stdout, stderr := spill(t, "explain", file, target)
		for _, text := range want {
			if status != exitOK || !strings.Contains(stdout, text) {
				t.Errorf("%s: status %d, want %q in\n%s%s", target, status, text, stdout, stderr)
			}
		}
	}
}

func TestCommandsThatFail(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, []byte("clusters: [{nam: a}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"explain", wrong}, exitUsage, "nam is no field here; did you mean name?"},
		{[]string{"explain", shop, "cart"}, exitUsage, "neither a path nor a URL"},
		{[]string{"explain", shop, "/%zz"}, exitUsage, "neither a path nor a URL"},
		{[]string{"explain", shop, "http://[", "-X", "PUT"}, exitUsage, "neither a path nor a URL"},
		{[]string{"explain", shop, "-X", "BAD METHOD"}, exitUsage, `--method is "BAD METHOD", must be a method such as GET`},
		{[]string{"explain", shop, "-H", "nonsense"}, exitUsage, `--header is "nonsense", must be a name, a colon and a value`},
		{[]string{"explain", shop, "-H", "two words: x"}, exitUsage, `--header is "two words: x"`},
		{[]string{"explain", shop, "-H", "a: x\ny"}, exitUsage, `--header is "a: x\ny"`},
		{[]string{"explain", shop, "--body=-1"}, exitUsage, "--body is -1"},
		{[]string{"explain", shop, "--open-files=-1"}, exitUsage, "--open-files is -1, must be 1 or more"},
		{[]string{"explain", shop, "--from", "10.0.0"}, exitUsage, `--from is "10.0.0", must be an address`},
		{[]string{"explain", shop, "--listener", "none"}, exitUsage, `unknown listener "none"`},
		{[]string{"explain", shop, "--client", "cn:me"}, exitUsage, "set tls.client_ca"},
		{[]string{"import", "grpc", "none.json"}, exitUsage, "none.json"},
		{[]string{"import", "envoy", wrong + "x"}, exitUsage, "no such file"},
		{[]string{"import", "grpc", "--strict", "internal/gateway/importer/testdata/grpc.json"}, exitBroken, "left out ("},
		{[]string{"check", wrong}, exitUsage, ">    1 | clusters: [{nam: a}]"},
		{[]string{"check", shop}, exitEnvironment, "FAIL  files      listener public: tls: open cert.pem"},
	} {
		r := start(t, row.args...)
		if status := r.status(t); status != row.status || !strings.Contains(r.stdout.String()+r.stderr.String(), row.want) {
			t.Errorf("%v: status %d, want %d with %q:\n%s%s", row.args, status, row.status, row.want, r.stdout.String(), r.stderr.String())
		}
	}
}

func TestCheckLive(t *testing.T) {
	up := freeport.Address(t) // which the command cannot get after ln is closed
	ln, err := net.Listen("tcp", up)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	check := func(listen, upstream string) (status int, steps []step) {
		t.Helper()
		text := "listeners: [{address: '" + listen + "'}]\nclusters: [{name: web, endpoints: ['" + upstream + "'], connect_timeout: 1s}]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := start(t, "check", "--live", "--output=json", file)
		status = r.status(t)
		if err := json.Unmarshal(r.stdout.Bytes(), &steps); err != nil {
			t.Fatal(err)
		}
		return status, steps
	}
	if status, steps := check("127.0.0.1:0", up); status != exitOK || len(steps) != 4 || !steps[3].OK {
		t.Errorf("all is well: %d, %+v", status, steps)
	}
	if status, steps := check(up, "127.0.0.1:9"); status != exitEnvironment || steps[2].OK || !strings.Contains(steps[2].Problems[0], "in use") || steps[2].Hint == "" {
		t.Errorf("the address is taken: %d, %+v", status, steps)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if status, steps := check("127.0.0.1:0", up); status != exitBroken || steps[3].OK || !strings.Contains(steps[3].Problems[0], "cluster web: endpoint "+up) {
		t.Errorf("nobody is there: %d, %+v", status, steps)
	}
}

func TestImport(t *testing.T) {
	envoy := []string{"import", "envoy", "internal/gateway/importer/testdata/envoy.yaml"}
	r := start(t, envoy...)
	if status := r.status(t); status != exitOK {
		t.Fatal(r.stderr.String())
	}
	c, err := config.Parse("imported", r.stdout.Bytes())
	if err != nil || len(c.Clusters) != 3 || !strings.Contains(r.stderr.String(), "left out (limit): static_resources.clusters[0].circuit_breakers.thresholds[0].max_retries = ") {
		t.Errorf("%v: %s", err, r.stderr.String())
	}
	file := filepath.Join(t.TempDir(), "imported.yaml")
	if err := os.WriteFile(file, r.stdout.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := start(t, "explain", file, "http://shop.example.com/exact"); r.status(t) != exitOK || !strings.Contains(r.stdout.String(), "cluster web,") {
		t.Error(r.stdout.String(), r.stderr.String())
	}
	asJSON := start(t, append(envoy, "--output=json")...)
	asJSON.status(t)
	var all struct {
		Config         string
		Carried, Notes []json.RawMessage
	}
	if err := json.Unmarshal(asJSON.stdout.Bytes(), &all); err != nil || all.Config != r.stdout.String() || len(all.Carried) < 60 || len(all.Notes) < 35 {
		t.Errorf("%v: %d carried, %d notes", err, len(all.Carried), len(all.Notes))
	}
}
