package explain

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// explainable is a configuration with two clusters, for the addresses in its %s.
const explainable = `mode: enforce
listeners:
  - {name: edge, address: "127.0.0.1:0", max_body_bytes: 2000, max_timeout: 10s}
  - {name: inside, address: "127.0.0.1:0", boundary: internal, peers: [127.0.0.0/8], others: SHEDDABLE_PLUS}
clusters:
  - name: web
    endpoints: ["%s"]
    rate_limit: {rate: 1000}
    quota: {default_limit: {rate: 100}}
    retry: {ratio: 1, base: -1ms, max_body_bytes: 1000}
  - name: jobs
    endpoints: ["%s"]
    shed: {mode: "off"}
    retry: {mode: observe}
routes:
  - {path: /jobs/, listeners: [inside], cluster: jobs, criticality: CRITICAL_PLUS}
  - {path: /jobs/, cluster: jobs, criticality: SHEDDABLE, timeout: 3s}
  - {host: "*.example.com", cluster: web, methods: [GET, PUT], headers: {X-Kind: "*", X-Key: hidden}, customer: {header: X-Team, trusted_header: true}}
  - {path: /healthz, cluster: web, exempt: true}
  - {path: /api, cluster: web, customer: {header: X-Team, trusted_header: true}}
`

// questions are asked of both.
var questions = []struct {
	listener, method, url string
	header                string // lines
	body                  int64
}{
	{"edge", "GET", "http://a.test/jobs/1", "", 0},
	{"edge", "GET", "http://a.test//jobs/../jobs/1", "X-Request-Criticality: CRITICAL_PLUS\nX-Envoy-Attempt-Count: 4", 0},
	{"inside", "GET", "http://a.test/jobs/1", "X-Request-Criticality: CRITICAL_PLUS\nX-Envoy-Attempt-Count: 4", 0},
	{"inside", "GET", "http://a.test/jobs/1", "Baggage: a=1, criticality=SHEDDABLE\nGrpc-Previous-Rpc-Attempts: 7", 0},
	{"edge", "PUT", "http://b.example.com/", "X-Kind: x\nX-Key: hidden\nX-Team: red\nAmz-Sdk-Request: attempt=3; max=5", 500},
	{"edge", "PUT", "http://b.example.com/api", "X-Kind: x\nX-Key: other\nX-Team: red", 1500},
	{"edge", "POST", "http://b.example.com/api", "X-Team: red\nX-Request-Criticality: sheddable\nX-Envoy-Expected-Rq-Timeout-Ms: 60000", 0},
	{"edge", "GET", "http://b.example.com/none", "", 0},
	{"edge", "POST", "http://a.test/api", "", 3000},
	{"edge", "GET", "http://a.test/healthz", "X-Request-Criticality: SHEDDABLE", 0},
	{"inside", "GET", "http://a.test/healthz", "X-Forwarded-For: 9.9.9.9\nX-Hop: 1\nConnection: X-Hop", 0},
	{"edge", "GET", "http://a.test/api", "X-Forwarded-For: 9.9.9.9\nX-Request-Criticality: nonsense\nBaggage: criticality=CRITICAL_PLUS", 0},
}

// reality is what a proxy that runs does with a request: which endpoint got what.
type reality struct {
	mu     sync.Mutex
	fails  failure // of the first attempt
	got    []*http.Request
	at     []string
	events []spillway.Event
}

func (r *reality) at1(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got, r.at = append(r.got, req), append(r.at, name)
		if len(r.got) > 1 {
			return
		}
		if r.fails.broken {
			panic(http.ErrAbortHandler)
		}
		for name, value := range r.fails.header {
			w.Header().Set(name, value)
		}
		if r.fails.status != 0 {
			w.WriteHeader(r.fails.status)
		}
	})
}

func (r *reality) Observe(e spillway.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *reality) reset(f failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails, r.got, r.at, r.events = f, nil, nil, nil
}

// quiet waits until no more goroutines run than did before the test.
func quiet(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
			}
		}
	})
}

// serve serves h on a free port. Each connection has one request: net/http repeats what
// breaks on a used one.
func serve(t *testing.T, h http.Handler) (address string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.SetKeepAlivesEnabled(false)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func requestOf(t *testing.T, address, method, url, header string, body int64) *http.Request {
	t.Helper()
	rest := strings.TrimPrefix(url, "http://")
	host, path, _ := strings.Cut(rest, "/")
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+"/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	if body > 0 {
		r.Body, r.ContentLength = io.NopCloser(io.LimitReader(zeros{}, body)), body
	}
	for line := range strings.Lines(header) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		r.Header.Add(name, value)
	}
	return r
}

// TestExplainAgreesWithTheProxy asks a proxy that runs and one that explains.
func TestExplainAgreesWithTheProxy(t *testing.T) {
	quiet(t)
	world := new(reality)
	web := serve(t, world.at1("web"))
	jobs := serve(t, world.at1("jobs"))
	c, err := config.Parse("proxy.yaml", fmt.Appendf(nil, explainable, web, jobs))
	if err != nil {
		t.Fatal(err)
	}
	p, err := gateway.Start(context.Background(), c, gateway.Config{Observer: world})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	defer p.Close()
	for i, q := range questions {
		r := requestOf(t, "proxy", q.method, q.url, q.header, q.body)
		r.URL.Host, r.URL.Scheme, r.RemoteAddr = "", "", "127.0.0.1:1"
		r.RequestURI = r.URL.RequestURI()
		e, err := Explain(c, Question{Listener: q.listener, Request: r})
		if err != nil {
			t.Fatalf("question %d: %v", i, err)
		}
		trial := func(f failure) (status, attempts int) {
			return world.try(t, client, f, requestOf(t, p.Addr(q.listener).String(), q.method, q.url, q.header, q.body))
		}
		status, attempts := trial(failure{})
		if status != e.Status {
			t.Errorf("question %d: status %d, explained %d", i, status, e.Status)
		}
		agree(t, i, world, e)
		if e.Retries == nil || attempts == 0 {
			continue
		}
		for n, c := range retryCases[1:] {
			_, attempts := trial(c.failure)
			want := e.Retries.Cases[n+1].Again && e.Retries.Mode == "enforce"
			if attempts > 1 != want {
				t.Errorf("question %d, %s: %d attempts, explained to be sent again %v", i, c.when, attempts, want)
			}
		}
	}
}

// try sends a request to a proxy whose upstreams fail so.
func (r *reality) try(t *testing.T, client *http.Client, f failure, req *http.Request) (status, attempts int) {
	t.Helper()
	r.reset(f)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	return resp.StatusCode, len(r.got)
}

// agree compares what an endpoint got, and what gates have reported.
func agree(t *testing.T, i int, world *reality, e *Explanation) {
	t.Helper()
	world.mu.Lock()
	defer world.mu.Unlock()
	if e.Target == nil {
		if len(world.got) > 0 {
			t.Errorf("question %d: %s got it, explained nobody", i, world.at[0])
		}
		return
	}
	asked := make(map[string]bool)
	for _, event := range world.events {
		asked[event.Policy] = true
		if server := event.Policy == "ratelimit" || event.Policy == "quota" || event.Policy == "shed"; server &&
			(event.Call.Criticality.String() != e.Call.Criticality || event.Call.Customer != e.Call.Customer || int(event.Call.Attempt)+1 != e.Call.Attempt) {
			t.Errorf("question %d: %s saw %+v, explained %+v", i, event.Policy, event.Call, e.Call)
		}
	}
	for _, g := range e.Gates {
		if known := g.Gate != "connections" && g.Gate != "batch"; known && asked[g.Gate] != (g.Does == "lets it through") {
			t.Errorf("question %d: %s was asked %v, explained %q", i, g.Gate, asked[g.Gate], g.Does)
		}
	}
	if len(world.got) == 0 {
		return
	}
	if world.at[0] != e.Target.Cluster {
		t.Errorf("question %d: %s got it, explained %s", i, world.at[0], e.Target.Cluster)
	}
	got := world.got[0].Header
	for _, s := range e.Target.Sent {
		name, value, _ := strings.Cut(s, ": ")
		if drawn := got.Get("X-Request-Level"); e.Call.Level == 0 && name == "X-Request-Level" && drawn != "" && strings.HasSuffix(value, "drawn at random for each request") {
			continue
		} else if name == "Baggage" {
			value = strings.Replace(value, "(drawn)", drawn, 1)
		}
		if value == "a new UUID" && name == "X-Request-Id" && len(got[name]) == 1 && len(got[name][0]) == 36 {
			continue
		}
		if !strings.HasPrefix(value, "the time left") && !slices.Equal(got[name], []string{value}) {
			t.Errorf("question %d: %s is %q, explained %q", i, name, got[name], value)
		}
	}
	for _, h := range e.Headers {
		if h.Sent == "" && len(got[h.Name]) > 0 {
			t.Errorf("question %d: %s was sent on, explained not", i, h.Name)
		}
	}
}

// TestExplainKeepsSecrets: values of headers that routes ask for are not told.
func TestExplainKeepsSecrets(t *testing.T) {
	quiet(t)
	c, err := config.Parse("proxy.yaml", fmt.Appendf(nil, explainable, "127.0.0.1:1", "127.0.0.1:2"))
	if err != nil {
		t.Fatal(err)
	}
	r := requestOf(t, "proxy", "GET", "http://b.example.com/", "X-Kind: x\nX-Key: mine", 0)
	e, err := Explain(c, Question{Request: r})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%+v", e)
	if strings.Contains(text, "hidden") || strings.Contains(text, "mine") || !strings.Contains(text, "header X-Key has another value") {
		t.Error(text)
	}
	for _, bad := range []Question{{Listener: "none", Request: r}, {Client: "me", Request: r}} {
		if _, err := Explain(c, bad); err == nil {
			t.Errorf("%+v was explained", bad)
		}
	}
}

// TestClaimingHeaders: each header that Judge reads is explained.
func TestClaimingHeaders(t *testing.T) {
	var names []string
	for _, c := range claiming {
		names = append(names, c.name)
	}
	slices.Sort(names)
	x, err := newRehearsal(config.ForUpstream("127.0.0.1:0", "127.0.0.1:1").Defaulted(), &config.Listener{Boundary: "internal", Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer x.close()
	values := map[string]string{
		"X-Request-Criticality": "SHEDDABLE", "Baggage": "criticality=SHEDDABLE", "X-Envoy-Attempt-Count": "2",
		"Grpc-Previous-Rpc-Attempts": "1", "Amz-Sdk-Request": "attempt=2", "X-Envoy-Expected-Rq-Timeout-Ms": "5", "Grpc-Timeout": "5m",
		"X-Request-Level": "7", "X-Request-Progress": "9\nX-Request-Level: 7",
	}
	if all := slices.Sorted(maps.Keys(values)); !slices.Equal(all, names) {
		t.Fatalf("%v, want %v", all, names)
	}
	for name, value := range values {
		r := requestOf(t, "proxy", "POST", "http://a.test/", name+": "+value, 0)
		if _, claims := x.Judge(x.Routes().All()[0], time.Now(), r); claims.Attempt == 0 && !claims.Labelled && claims.Timeout == 0 && claims.Level == 0 {
			t.Errorf("%s claims nothing", name)
		}
	}
}
