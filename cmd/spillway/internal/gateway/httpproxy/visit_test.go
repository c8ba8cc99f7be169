package httpproxy

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/exporters"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/logs"
)

const parent = "00-" + trace + "-00f067aa0ba902b7-01"

// watched starts a proxy with an access log and a tracer; both may be nil.
func watched(t *testing.T, h http.Handler, log *logs.AccessLog, tracer *exporters.Tracer) (url string, end func()) {
	t.Helper()
	address, _ := upstreamAt(t, h)
	c := config.ForUpstream("127.0.0.1:0", address)
	c.Mode, c.Listeners[0].Name, c.Listeners[0].PreserveRequestID = "enforce", "main", true
	c.Routes = []config.Route{{Path: "/api/", Customer: config.Customer{Header: "X-Customer", Trusted: true}}}
	p, err := Start(t.Context(), c, Config{Tracer: tracer})
	if err != nil {
		t.Fatal(err)
	}
	p.SetAccessLog(log)
	return "http://" + p.Addr("").String(), func() {
		_ = p.Close()
		p.SetAccessLog(nil).Close()
	}
}

func fetch(t *testing.T, url string) {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	r.Header.Set("Traceparent", parent)
	r.Header.Set("X-Request-Id", "id-1")
	r.Header.Set("X-Customer", "acme")
	resp, err := client(t, false).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// TestAccessLog: a line has the customer, the outcome and the latency at each stage.
func TestAccessLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.json")
	log, err := logs.OpenAccessLog(&config.Access{File: name, MaxBytes: 1 << 20, Sample: 1, SampleLost: 1, Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	url, end := watched(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Traceparent"); got != parent {
			t.Errorf("traceparent is sent as %q", got)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "hello")
	}), log, nil)
	fetch(t, url+"/api/orders/7?secret=x")
	fetch(t, url+"/none")
	end()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var got [2]logs.Record
	d := json.NewDecoder(strings.NewReader(string(text)))
	for i := range got {
		if err := d.Decode(&got[i]); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	served, lost := got[0], got[1]
	if served.Wait == nil || served.Upstream == nil || *served.Wait < 0 || *served.Upstream <= 0 || *served.Wait+*served.Upstream > served.Duration+0.01 {
		t.Errorf("times: %s", text)
	}
	if lost.Wait != nil || lost.Upstream != nil || lost.Account != "rejected" || lost.Reason != "no_route" || lost.Status != http.StatusNotFound {
		t.Errorf("no route: %+v", lost)
	}
	if served.Level < 1 || served.Level > 128 {
		t.Errorf("level %d, want one that was drawn", served.Level)
	}
	served.Wait, served.Upstream, served.Duration, served.Time, served.Level = nil, nil, 0, time.Time{}, 0
	if served.Endpoint == "" {
		t.Error("no endpoint")
	}
	served.Endpoint = ""
	if want := (logs.Record{
		AnsweredBy: "upstream", Attempts: 1, Account: "served", Listener: "main", Cluster: "upstream", Route: "/api/", Method: "GET", Path: "/api/orders/7", Status: 201, Bytes: 5,
		Class: "CRITICAL", Customer: "acme", Caller: "127.0.0.1", RequestID: "id-1", TraceID: trace,
	}); served != want {
		t.Errorf("%+v, want %+v", served, want)
	}
	if strings.Contains(string(text), "secret") {
		t.Errorf("the query is in the log: %s", text)
	}
}

// Requests that are rejected when their headers arrive have lines as the others have.
func TestAccessLogOfEarlyRejections(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.json")
	log, err := logs.OpenAccessLog(&config.Access{File: name, MaxBytes: 1 << 20, Sample: 1, SampleLost: 1, Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	address, _ := upstreamAt(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	c := config.ForUpstream("127.0.0.1:0", address)
	c.Mode, c.Listeners[0].Name, c.Listeners[0].PreserveRequestID = "enforce", "main", true
	c.Clusters[0].RateLimit = config.RateLimit{Rate: 0.001}
	c.Routes = []config.Route{{Path: "/api/", Customer: config.Customer{Header: "X-Customer", Trusted: true}}}
	p, err := Start(t.Context(), c, Config{})
	if err != nil {
		t.Fatal(err)
	}
	p.SetAccessLog(log)
	const requests = 40
	for range requests {
		fetch(t, "http://"+p.Addr("").String()+"/api/orders/7?secret=x")
	}
	_ = p.Close()
	p.SetAccessLog(nil).Close()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != requests {
		t.Errorf("%d lines for %d requests", len(lines), requests)
	}
	for _, line := range lines[1:] {
		var got logs.Record
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if got.Level < 1 || got.Level > 128 {
			t.Errorf("level %d, want one that was drawn", got.Level)
		}
		got.Time, got.Duration, got.Bytes, got.Level = time.Time{}, 0, 0, 0
		if want := (logs.Record{
			AnsweredBy: "proxy", Policy: "ratelimit", Settings: "clusters[upstream].rate_limit.rate", Limit: 0.001, Unit: "per second",
			Account: "rejected", Reason: "rate_limit", Listener: "main", Cluster: "upstream", Route: "/api/", Method: "GET", Path: "/api/orders/7",
			Status: 503, Class: "CRITICAL", Customer: "acme", Caller: "127.0.0.1", RequestID: "id-1", TraceID: trace,
		}); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

// TestTraceContext: without a tracer a traceparent is passed on as it is; with one, the
// request keeps its trace, and the span of the proxy is the parent. A receiver that hangs
// delays no request.
func TestTraceContext(t *testing.T) {
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hangs.Close()
	tracer, err := exporters.StartTraces(&config.Otel{Endpoint: hangs.URL, Traces: &config.Traces{Ratio: 1, Rate: 1000}}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer tracer.Close()
	defer close(release)
	for _, x := range []*exporters.Tracer{nil, tracer} {
		sent := make(chan string, 1)
		url, end := watched(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent <- r.Header.Get("Traceparent") }), nil, x)
		fetch(t, url+"/api/")
		got := <-sent
		if !strings.HasPrefix(got, "00-"+trace+"-") || len(got) != len(parent) || (got == parent) != (x == nil) {
			t.Errorf("with the tracer %v, %q is sent for %q", x != nil, got, parent)
		}
		end()
	}
}

// TestAccessLogOfUpgrades: the line of an upgraded connection has the status by which it was upgraded.
func TestAccessLogOfUpgrades(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.json")
	log, err := logs.OpenAccessLog(&config.Access{File: name, MaxBytes: 1 << 20, Sample: 1, SampleLost: 1, Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	_, p := front(t, switching(func(net.Conn, string, error) {}), nil)
	p.SetAccessLog(log)
	_, _ = io.Copy(io.Discard, upgraded(t, p, "", ""))
	var line logs.Record
	text, err := os.ReadFile(name)
	for end := time.Now().Add(10 * time.Second); json.Unmarshal(text, &line) != nil; <-time.After(time.Millisecond) {
		if err != nil || time.Now().After(end) {
			t.Fatalf("%v: %q", err, text)
		}
		text, err = os.ReadFile(name)
	}
	p.SetAccessLog(nil).Close()
	if line.Status != http.StatusSwitchingProtocols || line.AnsweredBy != logs.ByUpstream || line.Upstream == nil {
		t.Errorf("%s", text)
	}
}
