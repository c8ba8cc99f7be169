package exporters

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/resets"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A scene is a proxy with one listener and one cluster.
type scene struct {
	*admin.Server

	levels    admin.Levels
	collector *collector.Collector
	decisions *decisions.Log
	now       time.Time
	quiet     bool // no requests come
}

func newScene(mode spillway.Mode) *scene {
	s := &scene{now: noon, collector: collector.New(), decisions: decisions.New(nil), levels: admin.Levels{
		Mode:      mode,
		Listeners: []admin.Listener{{Name: "main", Address: "127.0.0.1:8000", Open: 12, RejectedBy: resets.Counts{ConnectionRate: 5}}},
		Gates:     []admin.Gate{{Listener: "main", Cluster: "web", Limit: 24, InFlight: 20, Peak: 27, Baseline: 5 * time.Millisecond}},
		Clusters: []admin.Cluster{{
			Name: "web", MaxInFlight: 1024, Budget: &admin.Budget{Left: 100, Capacity: 100}, Endpoints: []admin.Endpoint{{Address: "10.0.0.1:8080"}},
		}},
	}}
	s.Server = admin.NewAt(admin.Config{Collector: s.collector, Decisions: s.decisions, Source: s, Version: "test", Metrics: Handler}, noon)
	return s
}

// Levels implements [admin.Source].
func (s *scene) Levels(time.Time) admin.Levels {
	l := s.levels
	l.Gates, l.Clusters = slices.Clone(l.Gates), slices.Clone(l.Clusters)
	return l
}

// Ready implements [admin.Source].
func (*scene) Ready() error { return nil }

func (s *scene) seconds(n int) {
	for range n {
		s.second()
	}
}

// second lets a second pass, in which ten requests are rejected, ten fail, and 100 are served, unless it is quiet.
func (s *scene) second() {
	s.now = s.now.Add(time.Second)
	for i := range 120 {
		if !s.quiet {
			s.request(i)
		}
	}
	s.Tick(s.now)
}

func (s *scene) request(i int) {
	e := spillway.Event{Time: s.now, Call: spillway.Call{Key: "web"}, Policy: "retry", Outcome: spillway.OutcomeServed, Latency: time.Duration(i) * time.Millisecond}
	end := accounts.End{Account: accounts.Served}
	switch {
	case i < 10:
		e = spillway.Rejection(&spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonHigherClass})
		e.Time, e.Policy, e.Call.Key = s.now, "shed", "web"
		end = accounts.End{Account: accounts.Rejected, Reason: accounts.Reason(e.Reason)}
	case i < 20:
		e.Outcome, e.Err = spillway.OutcomeFailed, errors.New("failed")
		end.Account = accounts.Failed
	}
	s.decisions.Before(s.collector).Observe(e)
	s.collector.Accounts().Begin()
	s.collector.Accounts().End(end)
}

// get reads the metrics from the loopback address.
func get(t *testing.T, h http.Handler, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8001}
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, here), http.MethodGet, "/metrics", nil)
	r.Host = "127.0.0.1:8001"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
