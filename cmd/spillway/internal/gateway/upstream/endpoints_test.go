package upstream

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestDownIsNoFlicker: an endpoint that is tried from time to time stays down until it
// answers, or until no attempt was made for a long time.
func TestDownIsNoFlicker(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	address := server.Listener.Addr().String()
	for _, all := range [][]string{{address}, {address, address}} {
		e := newEndpoints(&config.Cluster{Endpoints: all}, nil)
		noon := time.Now()
		for _, x := range e.all {
			x.failed.Store(int64(noon.Sub(e.set.Start())))
			x.lost.Store(true)
		}
		down := func(after time.Duration) int {
			n := 0
			for _, s := range e.stats(noon.Add(after)) {
				if s.Failed {
					n++
				}
			}
			return n
		}
		if down(0) != len(all) || down(5*time.Second) != len(all) || down(11*time.Second) != 0 {
			t.Errorf("of %d down: %d, after 5s %d, after 11s %d", len(all), down(0), down(5*time.Second), down(11*time.Second))
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := e.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if down(0) != len(all)-1 {
			t.Errorf("after an answer %d of %d are down", down(0), len(all))
		}
		e.close()
	}
}

// TestRequestsOfTheConfigurationBefore: a request that was made for endpoints that have just
// been replaced goes to the current endpoints, with their settings.
func TestRequestsOfTheConfigurationBefore(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	defer server.Close()
	address := server.Listener.Addr().String()
	for _, all := range [][]string{{address}, {address, address}} {
		e := newEndpoints(&config.Cluster{Endpoints: all}, nil)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:1/path", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := e.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(body) != "/path" || err != nil || r.URL.Host != "127.0.0.1:1" {
			t.Errorf("%d endpoints: %q, %v, and the request is one to %v", len(all), body, err, r.URL)
		}
		e.close()
	}
}

// TestPlacesOfASubset: connections are made to the endpoints of the subset only.
func TestPlacesOfASubset(t *testing.T) {
	x := &config.Cluster{Endpoints: []string{"a:1", "b:1", "c:1", "d:1"}, MaxConnections: 10, Protocol: "http1"}
	x.Balance.Subset = &config.Subset{Size: 2}
	v := &Version{Config: x, endpoints: newEndpoints(x, nil)}
	if got, _ := v.Places(); got != 10*len(v.endpoints.all) || got != 20 {
		t.Errorf("there are %d places, want 20 at 2 endpoints", got)
	}
}
