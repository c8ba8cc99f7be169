package httpproxy

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

func TestRetriesGoElsewhere(t *testing.T) {
	quiet(t)
	var rejected atomic.Int64
	bad, _ := upstreamAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		rejected.Add(1)
		w.Header().Set("X-Envoy-Overloaded", "true")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	good, _ := upstreamAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	for mode, wantAll := range map[config.Mode]bool{"enforce": true, "observe": false} {
		rejected.Store(0)
		url, _ := front(t, http.NotFoundHandler(), func(c *config.Config) {
			x := &c.Clusters[0]
			x.Endpoints = []string{bad, good}
			x.Throttle.Mode = "off"
			x.Retry = config.Retry{Mode: mode, MaxAttempts: 2, Ratio: 1, Base: -1}
		})
		served := 0
		for i := range 60 {
			body := fmt.Sprint("body ", i)
			if resp, got := do(t, client(t, false), http.MethodPost, url, body); resp.StatusCode == http.StatusOK && got == body {
				served++
			}
		}
		if n := rejected.Load(); n < 1 || n > 15 || // it rejects, and gets less for it
			(served == 60) != wantAll || !wantAll && served+int(n) != 60 {
			t.Errorf("retries %s: %d of 60 served, %d rejected by an endpoint", mode, served, n)
		}
	}
}

func TestDeadEndpointsAreAvoided(t *testing.T) {
	quiet(t)
	dead := closedAddress
	good, _ := upstreamAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	url, p := front(t, http.NotFoundHandler(), func(c *config.Config) {
		c.Mode = "enforce"
		c.Clusters[0].Endpoints = []string{dead, good}
		c.Clusters[0].Retry.Ratio = 1
	})
	x := client(t, false)
	for i := range 100 {
		if resp, got := do(t, x, http.MethodPost, url, "work"); resp.StatusCode != http.StatusOK || got != "work" {
			t.Fatalf("request %d: %d %q", i, resp.StatusCode, got)
		}
	}
	if s := p.Stats(time.Now()).Clusters["upstream"].Endpoints; s[0].Total > 20 || s[1].Total != 100 || s[0].Busy != 0 || s[1].Busy != 0 {
		t.Errorf("endpoints: %+v", s)
	}
}

// TestTheOnlyEndpointIsDown: it still gets requests, but it is reported as unreachable.
func TestTheOnlyEndpointIsDown(t *testing.T) {
	quiet(t)
	dead := closedAddress
	for _, kind := range []string{"text/plain", "application/grpc"} {
		url, p := front(t, http.NotFoundHandler(), func(c *config.Config) { c.Clusters[0].Endpoints = []string{dead} })
		began := time.Now()
		do(t, client(t, true), http.MethodPost, url, "work", "Content-Type", kind)
		if s := p.Stats(began).Clusters["upstream"].Endpoints[0]; !s.Failed || s.Total != 1 || s.Busy != 0 {
			t.Errorf("%s: %+v", kind, s)
		}
	}
}
