package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/ratelimit"
)

func TestMetrics(t *testing.T) {
	h, err := newHandler(one)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusServiceUnavailable} {
		if code, body := get(t, h, httptest.NewRequest(http.MethodGet, "/carts/7", nil)); code != want {
			t.Errorf("%d %s, want %d", code, body, want)
		}
	}
	_, metrics := get(t, h, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`spillway_decisions_total{criticality="CRITICAL",mode="enforce",outcome="admitted",policy="shed",reason=""} 1`,
		`spillway_decisions_total{criticality="CRITICAL",mode="enforce",outcome="rejected",policy="ratelimit",reason="rate_limit"} 2`,
		`spillway_route_rejected_total{reason="rate_limit",route="GET /carts/{id}"} 2`,
		`spillway_latency_seconds_count{role="server"} 1`,
		`spillway_in_flight{cluster="",listener="main"} 0`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
}

// one admits one request, and the next after 100 s.
var one = ratelimit.Config{Rate: 0.01, BurstSeconds: 100}

// get returns the status and the answer.
func get(t *testing.T, h http.Handler, r *http.Request) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestLines(t *testing.T) {
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\t// added\n")
	if len(parts) != 3 || strings.Count(parts[1], "\n") > 15 {
		t.Errorf("%d parts, want 15 added lines at most", len(parts))
	}
}
