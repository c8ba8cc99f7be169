package httpproxy

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

func TestUsersAllLeaveBeforeTheEnd(t *testing.T) {
	for range 200 {
		var u users
		var inside atomic.Int64
		var all sync.WaitGroup
		begin := make(chan struct{})
		for range 4 {
			all.Go(func() {
				<-begin
				for u.enter() {
					inside.Add(1)
					inside.Add(-1)
					u.leave()
				}
			})
		}
		close(begin)
		<-u.retire()
		if n := inside.Load(); n != 0 {
			t.Fatalf("%d are inside after the last has left", n)
		}
		if u.enter() {
			t.Fatal("somebody got in after the end")
		}
		all.Wait()
		<-u.retire()
	}
}

func TestRoutes(t *testing.T) {
	routes := []config.Route{
		{Path: "/api/", Host: "*.example.com", Criticality: "CRITICAL_PLUS"},
		{Path: "/api/", Methods: []string{"GET"}, Customer: config.Customer{Header: "x-team"}},
		{Headers: map[string]string{"x-job": "*", "X-Kind": "nightly"}, Criticality: "SHEDDABLE"},
		{Host: "[::1]"},
	}
	s := &settings{}
	for i := range routes {
		s.routes = append(s.routes, newRoute(&config.Listener{Boundary: "internal"}, &routes[i], nil))
	}
	for _, row := range []struct {
		method, url string
		headers     []string
		want        int // -1: none
	}{
		{"POST", "http://a.example.com:81/api/x", nil, 0},
		{"POST", "http://A.Example.COM/api/", nil, 0},
		{"POST", "http://example.com/api/x", nil, -1},
		{"GET", "http://example.com/api/x", nil, 1},
		{"GET", "http://b.org/other/../api/x", nil, 1},
		{"GET", "http://b.org/api/../other", nil, -1},
		{"GET", "http://b.org//api/", nil, 1},
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
		if x := s.match(r); x != nil {
			for i := range s.routes {
				if s.routes[i] == x {
					got = i
				}
			}
		}
		if got != row.want {
			t.Errorf("%s %s %v: route %d, want %d", row.method, row.url, row.headers, got, row.want)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("X-Team", "blue")
	if got := s.routes[1].customer(r); got != "blue" {
		t.Errorf("customer %q", got)
	}
	r.Header.Set("X-Team", string(make([]byte, 300)))
	if got := s.routes[1].customer(r); got != "" {
		t.Errorf("a customer with a name of %d bytes", len(got))
	}
}
