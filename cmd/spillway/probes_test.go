//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestProbesWhileRejecting: a proxy that rejects nearly all requests is alive and ready, and so is the service behind it.
func TestProbesWhileRejecting(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	defer upstream.Close()
	file := write(t, fmt.Sprintf("mode: enforce\nlisteners: [{address: '127.0.0.1:0'}]\nadmin: {address: '127.0.0.1:0'}\n"+
		"clusters: [{name: service, endpoints: ['%s'], rate_limit: {rate: 0.001, burst_seconds: 1000}}]\nroutes: [{path: /healthz, exempt: true}, {}]\n", upstream.Listener.Addr()))
	r := start(t, "proxy", file)
	address, admin := "http://"+addressOf(t, r), dashboardOf(t, r)
	rejected := 0
	for range 50 {
		if status, _ := told(t, http.MethodGet, address+"/", "", ""); status == http.StatusServiceUnavailable {
			rejected++
		}
		for _, probe := range []string{address + "/healthz", admin + "/healthz", admin + "/readyz"} {
			if status, text := told(t, http.MethodGet, probe, "", ""); status != http.StatusOK {
				t.Fatalf("%s answers %d after %d rejections: %s", probe, status, rejected, text)
			}
		}
	}
	if rejected < 45 {
		t.Errorf("%d of 50 requests were rejected", rejected)
	}
}
