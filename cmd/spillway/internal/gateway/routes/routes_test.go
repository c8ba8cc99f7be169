package routes

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

func TestRoutes(t *testing.T) {
	routes := []config.Route{
		{Path: "/api/", Host: "*.example.com", Criticality: "CRITICAL_PLUS"},
		{Path: "/api/", Methods: []string{"GET"}, Customer: config.Customer{Header: "x-team"}},
		{Headers: map[string]string{"x-job": "*", "X-Kind": "nightly"}, Criticality: "SHEDDABLE"},
		{Host: "[::1]"},
	}
	s := New(&config.Config{Routes: routes}, &config.Listener{Boundary: "internal"})
	for _, row := range []struct {
		method, url string
		headers     []string
		want        int // -1: none
	}{
		{"POST", "http://a.example.com:81/api/x", nil, 0},
		{"POST", "http://A.Example.COM/api/", nil, 0},
		{"POST", "http://example.com/api/x", nil, -1},
		{"GET", "http://example.com/api/x", nil, 1},
		{"GET", "http://b.org/other/../api/x", nil, -1},
		{"GET", "http://b.org/api/../other", nil, -1},
		{"GET", "http://b.org//api/", nil, -1},
		{"GET", "http://b.org/apix", nil, -1},
		{"GET", "http://b.org/", []string{"X-Job", "7", "X-Kind", "nightly"}, 2},
		{"GET", "http://b.org/", []string{"X-Job", "7", "X-Kind", "daily"}, -1},
		{"GET", "http://b.org/", []string{"X-Kind", "nightly"}, -1},
		{"GET", "http://[::1]/", nil, 3},
		{"GET", "http://[::1]:81/", nil, 3},
		{"GET", "http://[::2]:81/", nil, -1},
	} {
		r := httptest.NewRequestWithContext(t.Context(), row.method, row.url, nil)
		for i := 0; i+1 < len(row.headers); i += 2 {
			r.Header.Set(row.headers[i], row.headers[i+1])
		}
		got := -1
		if x := s.Match(r); x != nil {
			got = x.Index
		}
		if got != row.want {
			t.Errorf("%s %s %v: route %d, want %d", row.method, row.url, row.headers, got, row.want)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("X-Team", "blue")
	if got := s.All()[1].Customer(r); got != "blue" {
		t.Errorf("customer %q", got)
	}
	r.Header.Set("X-Team", string(make([]byte, 300)))
	if got := s.All()[1].Customer(r); got != "" {
		t.Errorf("a customer with a name of %d bytes", len(got))
	}
}
