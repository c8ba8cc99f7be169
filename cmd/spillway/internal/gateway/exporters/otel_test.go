package exporters

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
)

// leavesNothing fails t if it leaks goroutines.
func leavesNothing(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			}
		}
	})
}

// registry has a metric of each kind.
func registry() (all *prometheus.Registry, requests prometheus.Counter) {
	all = prometheus.NewRegistry()
	counts := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests_total", Help: "One."}, []string{"policy", "reason"})
	level := prometheus.NewGauge(prometheus.GaugeOpts{Name: "level", Help: "One.", ConstLabels: prometheus.Labels{"cluster": "web"}})
	latency := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "latency_seconds", Help: "One.", Buckets: []float64{0.1, 0.5, 2}})
	waits := prometheus.NewSummary(prometheus.SummaryOpts{Name: "wait_seconds", Help: "One."})
	all.MustRegister(counts, level, latency, waits)
	counts.WithLabelValues("shed", "queue_full").Add(7)
	level.Set(-2.5)
	for _, v := range []float64{0.05, 0.3, 0.4, 1, 9} {
		latency.Observe(v)
		waits.Observe(v)
	}
	return all, counts.WithLabelValues("retry", "")
}

func begin(t *testing.T, c *config.Otel, from prometheus.Gatherer, log *bytes.Buffer) *Exporter {
	t.Helper()
	e, err := Start(c, "v1", from, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExport checks that a receiver gets the values of the registry as they change, and at the
// end.
func TestExport(t *testing.T) {
	leavesNothing(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://192.0.2.1:1") // counts for nothing
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "from=environment")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "zone=a,team=none")
	r := gatewaytest.NewReceiver(t)
	key := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Api-Key: one\n\nX-Tenant:  shop \n")
	all, requests := registry()
	var log bytes.Buffer
	e := begin(t, &config.Otel{
		Endpoint: r.Endpoint + "/", Interval: time.Second, HeadersFile: key, // an export may take as long
		Resource: map[string]string{"team": "web", "service.name": "edge"},
	}, all, &log)
	agrees := func(x gatewaytest.Export) bool {
		families, err := all.Gather()
		if err != nil {
			t.Fatal(err)
		}
		want := gatewaytest.Figures(families)
		return len(want) == 10 && maps.Equal(x.Figures, want)
	}
	x := r.Wait(t, agrees)
	if x.Header.Get("Api-Key") != "one" || x.Header.Get("X-Tenant") != "shop" || x.Header.Get("From") != "" {
		t.Errorf("headers %v", x.Header)
	}
	for name, want := range map[string]string{"service.name": "edge", "service.version": "v1", "team": "web", "zone": "a", "telemetry.sdk.language": "go"} {
		if x.Resource[name] != want {
			t.Errorf("%s is %q, want %q", name, x.Resource[name], want)
		}
	}
	if x.Resource["service.instance.id"] == "" || x.Resource["host.name"] == "" {
		t.Errorf("resource %v", x.Resource)
	}
	requests.Add(3)
	write("Api-Key: two")
	r.Wait(t, func(x gatewaytest.Export) bool { return agrees(x) && x.Header.Get("Api-Key") == "two" })
	requests.Add(4)
	e.Close()
	if x, ok := r.Last(); !ok || !agrees(x) {
		t.Errorf("the last export has %v", x.Figures)
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

// TestFlush closes an Exporter before its first interval: the last export has all values.
func TestFlush(t *testing.T) {
	leavesNothing(t)
	r := gatewaytest.NewReceiver(t)
	all, requests := registry()
	var log bytes.Buffer
	e := begin(t, &config.Otel{Endpoint: r.Endpoint}, all, &log)
	requests.Add(5)
	e.Close()
	x, ok := r.Last()
	if !ok || r.Asked.Load() != 1 || x.Figures[`requests_total{policy="retry",reason=""}`] != 5 || x.Resource["service.name"] != "spillway" || log.Len() > 0 {
		t.Errorf("%d exports, %+v, %s", r.Asked.Load(), x, &log)
	}
}

// TestFailures makes exports fail in several ways. They are logged once, and exports go on.
func TestFailures(t *testing.T) {
	leavesNothing(t)
	r := gatewaytest.NewReceiver(t)
	r.Status.Store(http.StatusServiceUnavailable)
	all, _ := registry()
	var log bytes.Buffer
	e := begin(t, &config.Otel{Endpoint: r.Endpoint, Interval: 10 * time.Millisecond}, all, &log)
	for end := time.Now().Add(time.Minute); r.Asked.Load() < 5; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("no more exports")
		}
	}
	r.Status.Store(0)
	r.Wait(t, func(gatewaytest.Export) bool { return true })
	e.Close()
	if n := strings.Count(log.String(), "metrics or spans were not sent"); n != 1 {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}

// TestAnswerIsLogged: the log has the error text of the endpoint.
func TestAnswerIsLogged(t *testing.T) {
	leavesNothing(t)
	r := gatewaytest.NewReceiver(t)
	r.Status.Store(http.StatusServiceUnavailable)
	all, _ := registry()
	var log bytes.Buffer
	begin(t, &config.Otel{Endpoint: r.Endpoint}, all, &log).Close()
	if n := strings.Count(log.String(), "metrics or spans were not sent"); n != 1 || !strings.Contains(log.String(), "body: no") {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}

// TestRedirect: keys are not sent to the target of a redirect.
func TestRedirect(t *testing.T) {
	leavesNothing(t)
	other := gatewaytest.NewReceiver(t)
	from := httptest.NewServer(http.RedirectHandler(other.Endpoint+"/v1/metrics", http.StatusTemporaryRedirect))
	defer from.Close()
	all, _ := registry()
	var log bytes.Buffer
	begin(t, &config.Otel{Endpoint: from.URL}, all, &log).Close()
	if other.Asked.Load() != 0 || !strings.Contains(log.String(), "307") {
		t.Errorf("%d followed: %s", other.Asked.Load(), &log)
	}
}

// TestTLS exports to a receiver with a self-signed certificate that requires a client
// certificate.
func TestTLS(t *testing.T) {
	leavesNothing(t)
	var clients atomic.Int64
	receiver := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		clients.Add(int64(len(r.TLS.PeerCertificates)))
	}))
	receiver.Config.ErrorLog = log.New(io.Discard, "", 0)
	receiver.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	receiver.StartTLS()
	defer receiver.Close()
	own := receiver.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name, kind string, der []byte) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good := config.ClientTLS{CA: file("ca.pem", "CERTIFICATE", own.Certificate[0])}
	good.Certificate, good.Key = good.CA, file("key.pem", "PRIVATE KEY", key)
	all, _ := registry()
	for name, row := range map[string]struct {
		tls  *config.ClientTLS
		want string
	}{
		"usual":          {nil, "certificate signed by unknown authority"},
		"no certificate": {&config.ClientTLS{CA: good.CA}, "certificate required"},
		"good":           {&good, ""},
	} {
		var log bytes.Buffer
		begin(t, &config.Otel{Endpoint: receiver.URL, TLS: row.tls}, all, &log).Close()
		if got := clients.Swap(0); got != 0 != (row.want == "") || !strings.Contains(log.String(), row.want) || row.want == "" && log.Len() > 0 {
			t.Errorf("%s: %d certificates, %s", name, got, &log)
		}
	}
	if err := Check(&config.Otel{Endpoint: receiver.URL, TLS: &config.ClientTLS{CA: good.Key}}); err == nil || !strings.Contains(err.Error(), "otel.tls: tls: ca: ") {
		t.Error(err)
	}
}

// TestSilence closes an Exporter whose receiver never answers.
func TestSilence(t *testing.T) {
	leavesNothing(t)
	end := make(chan struct{})
	deaf := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer deaf.Close()
	defer close(end)
	all, _ := registry()
	var log bytes.Buffer
	e := begin(t, &config.Otel{Endpoint: deaf.URL}, all, &log)
	e.lastWords = 50 * time.Millisecond
	e.Close()
	if !strings.Contains(log.String(), "deadline exceeded") {
		t.Error(log.String())
	}
}

func TestFailuresAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f, err := failures(slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		for range 600 { // ten minutes
			f.Handle(errors.New(strings.Repeat("x", 5000)))
			time.Sleep(time.Second)
		}
		if n := strings.Count(log.String(), "\n"); n != 10 || log.Len() > 10*500 || strings.Count(log.String(), "left_out=59") != 9 {
			t.Errorf("%d lines:\n%s", n, &log)
		}
	})
}

// TestHeaders reads valid and invalid files. Errors must not show their content.
func TestHeaders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headers")
	for text, want := range map[string]string{
		"A: b\r\nA: c\n":       "",
		"":                     "",
		"Authorization: x:y z": "",
		"hush":                 "line 1",
		"A: b\nhush hush: x":   "line 2",
		"\n\nA: hush\x01":      "line 3",
		": hush":               "line 1",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Check(&config.Otel{HeadersFile: file})
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Start(&config.Otel{Endpoint: "http://127.0.0.1:9", HeadersFile: file + "x"}, "", nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if e, err := Start(nil, "", nil, nil); e != nil || err != nil {
		t.Error(e, err)
	}
}
