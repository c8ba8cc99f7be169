package spilladmin_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spilladmin"
)

var (
	here  = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8001}
	there = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 8001}
)

func newPage(tb testing.TB, c spilladmin.Config) *spilladmin.Page {
	tb.Helper()
	p, err := spilladmin.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// newServer returns a server whose observer is p, and which p shows as shop.
func newServer(tb testing.TB, p *spilladmin.Page, c ingress.Config) *ingress.Server {
	tb.Helper()
	c.Observer = p
	s, err := ingress.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	p.AddServer("shop", s)
	return s
}

// ask sends a request that arrives at a local address.
func ask(tb testing.TB, p http.Handler, method, path string, at net.Addr, headers ...string) *httptest.ResponseRecorder {
	tb.Helper()
	r := httptest.NewRequestWithContext(context.WithValue(tb.Context(), http.LocalAddrContextKey, at), method, path, nil)
	r.Host = "127.0.0.1:8001"
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// A state is what the tests read of /api/v1/state.
type state struct {
	Name, Program, Version, Mode string
	Verdict                      struct{ Level, Headline, Text, Do string }
	Mean                         struct {
		Offered, Goodput, Failed float64
		Rejected                 [spillway.Criticalities]float64
		P50                      *float64 `json:"p50_ms"`
	}
	Reasons []struct{ Policy, Reason, Mode string }
	Notices []struct{ Headline, Text string }
	Gates   []struct {
		Listener string
		InFlight int `json:"in_flight"`
		Limit    float64
	}
	Clusters []struct {
		Name     string
		Rejected float64
	}
	Customers []struct{ Customer string }
	Top       struct {
		Customers, Routes, Callers struct {
			Rows []struct {
				Name, Reason, Class string
				Count               uint64
			}
		}
	}
}

// next returns the state after a second has passed, in a bubble.
func next(tb testing.TB, p http.Handler) (st state) {
	tb.Helper()
	time.Sleep(1100 * time.Millisecond)
	w := ask(tb, p, http.MethodGet, "/api/v1/state", here)
	if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil || w.Code != http.StatusOK {
		tb.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	return st
}

// serve lets a request pass the gates, and serves it if they admit it.
func serve(s *ingress.Server, call spillway.Call) {
	p, r := s.Enter(context.Background(), call, ratelimit.Caller{})
	if !r.Rejected() {
		p.Done(spillway.OutcomeServed)
	}
}
