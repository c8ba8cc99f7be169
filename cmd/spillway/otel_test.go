//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	naming "github.com/prometheus/common/model"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
)

// exporting is a proxy in this process, which was built with the tag.
type exporting struct {
	running

	file   string
	end    context.CancelFunc
	status chan int
}

// export starts a proxy in front of an upstream that answers hello.
func export(t *testing.T, otel, admin string) *exporting {
	t.Helper()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // starts a goroutine that stays for ever
	signal.Stop(hangups)
	before := runtime.NumGoroutine()
	t.Cleanup(func() { // after everything that the test opened is closed
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			}
		}
	})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	t.Cleanup(upstream.Close)
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	text := fmt.Sprintf("mode: enforce\nlisteners: [{name: main, address: '127.0.0.1:0'}]\nclusters: [{name: web, endpoints: ['%s']}]\nadmin: {address: '%s'}\notel: {%s}\n",
		upstream.Listener.Addr(), admin, otel)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	e := &exporting{file: file, end: end, status: make(chan int, 1)}
	e.stderr.news = make(chan struct{}, 1)
	go func() { e.status <- run(ctx, []string{"proxy", "--config", file}, io.Discard, &e.stderr) }()
	return e
}

// stop ends the proxy.
func (e *exporting) stop(t *testing.T) {
	t.Helper()
	e.end()
	if status := <-e.status; status != exitOK {
		t.Errorf("status %d:\n%s", status, e.stderr.String())
	}
}

const served = `spillway_decisions_total{cluster="web",criticality="CRITICAL",mode="enforce",outcome="admitted",policy="retry",reason=""}`

// TestOtelAgreesWithMetrics has a receiver see what /metrics says, and in the end the
// requests that came after that.
func TestOtelAgreesWithMetrics(t *testing.T) {
	r := gatewaytest.NewReceiver(t)
	e := export(t, "endpoint: '"+r.Endpoint+"', interval: 1s, resource: {team: web}", "127.0.0.1:0")
	address, admin := addressOf(t, &e.running), dashboardOf(t, &e.running)
	for range 20 {
		fetch(t, address)
	}
	awaits(t, admin+"/metrics", served+" 20")
	// The peak goes down when a minute has passed; all else rests.
	x := r.Wait(t, func(x gatewaytest.Export) bool {
		_, text := told(t, http.MethodGet, admin+"/metrics", "", "")
		p := expfmt.NewTextParser(naming.UTF8Validation)
		families, err := p.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		all := gatewaytest.Figures(slices.Collect(maps.Values(families)))
		return len(all) > 20 && maps.Equal(all, x.Figures)
	})
	if x.Figures[served] != 20 || x.Resource["team"] != "web" || !strings.HasPrefix(x.Resource["service.version"], "spillway ") {
		t.Errorf("%+v", x)
	}
	for range 7 {
		fetch(t, address)
	}
	e.stop(t)
	if x, _ := r.Last(); x.Figures[served] != 27 || x.Figures["spillway_ready{}"] != 0 {
		t.Errorf("the last export has %v, ready %v", x.Figures[served], x.Figures["spillway_ready{}"])
	}
}

// TestOtelWithoutOperators exports where there is no address for operators, to where
// the file said at the start.
func TestOtelWithoutOperators(t *testing.T) {
	r := gatewaytest.NewReceiver(t)
	e := export(t, "endpoint: '"+r.Endpoint+"'", "off")
	address := addressOf(t, &e.running)
	for range 3 {
		fetch(t, address)
	}
	text, err := os.ReadFile(e.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.file, []byte(strings.Replace(string(text), r.Endpoint, "http://127.0.0.1:9", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	e.waitFor(t, "otel counts from the next start on")
	e.stop(t)
	if x, _ := r.Last(); x.Figures[served] != 3 {
		t.Errorf("the last export has %v", x.Figures)
	}
}

// TestOtelWithoutReceiver serves all requests while no export succeeds.
func TestOtelWithoutReceiver(t *testing.T) {
	e := export(t, "endpoint: 'http://127.0.0.1:1', interval: 1s", "off")
	address := addressOf(t, &e.running)
	for failed := false; !failed; failed = strings.Contains(e.stderr.String(), "metrics or spans were not sent") {
		if got := fetch(t, address); got != "hello" {
			t.Fatalf("got %q", got)
		}
	}
	for range 100 {
		if got := fetch(t, address); got != "hello" {
			t.Fatalf("got %q", got)
		}
	}
	e.stop(t) // the last export fails as well
	if n := strings.Count(e.stderr.String(), "metrics or spans were not sent"); n != 1 {
		t.Errorf("%d lines:\n%s", n, e.stderr.String())
	}
}

// TestOtelHeadersMissing starts and checks nothing whose headers cannot be read.
func TestOtelHeadersMissing(t *testing.T) {
	e := export(t, "endpoint: 'http://127.0.0.1:9', headers_file: /nowhere/key", "off")
	if status := <-e.status; status != exitEnvironment || !strings.Contains(e.stderr.String(), "otel.headers_file: open /nowhere/key") {
		t.Errorf("status %d: %s", status, e.stderr.String())
	}
	e.end()
	var out strings.Builder
	if status := run(t.Context(), []string{"check", e.file}, &out, io.Discard); status != exitEnvironment || !strings.Contains(out.String(), "FAIL  files      otel.headers_file: open /nowhere/key") {
		t.Errorf("check: status %d: %s", status, out.String())
	}
}
