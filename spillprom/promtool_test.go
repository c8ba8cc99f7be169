package spillprom

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed90641741/spillway/internal/telemetry"
)

// TestPromtool has promtool check a scrape.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: Debian has it in the package prometheus")
	}
	x := collector(t, Config{})
	l := someLevels()
	x.AddServer("main", server{l})
	x.AddClient(l)
	x.AddBudget("db", bucket{l})
	everything(x, telemetry.Policies[:]...)
	r := prometheus.NewRegistry()
	r.MustRegister(x)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = w.Body
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
