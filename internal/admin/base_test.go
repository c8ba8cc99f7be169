package admin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/access"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/resets"
	"github.com/seed90641741/spillway/internal/admin/settings"
)

// fake is a Proxy with the levels, settings and errors that a test sets.
type fake struct {
	mu       sync.Mutex
	levels   Levels
	settings []settings.Setting
	reloads  int
	unready  error
	failing  error // changes
	kept     []string
}

func (f *fake) Levels(time.Time) Levels {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.levels
	l.Gates, l.Clusters, l.Listeners = slices.Clone(l.Gates), slices.Clone(l.Clusters), slices.Clone(l.Listeners)
	for i := range l.Clusters {
		l.Clusters[i].Endpoints = slices.Clone(l.Clusters[i].Endpoints)
	}
	return l
}

func (f *fake) Ready() error                 { return f.unready }
func (f *fake) Settings() []settings.Setting { return f.settings }

func (f *fake) SetMode(m spillway.Mode) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing == nil {
		f.levels.Override = &Override{Field: "mode", Value: m.String(), File: f.levels.Mode.String(), Since: noon}
		f.levels.Mode = m
	}
	return f.kept, f.failing
}

func (f *fake) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reloads++
	f.levels.Override = nil
	return f.failing
}

// someMetrics says of the last State what a test can compare.
func someMetrics(state func() *State, names bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "offered %v\nnames %v\n", state().Mean.Offered, names)
	})
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A scene is a proxy as it stands while the same load comes each second.
type scene struct {
	*Server

	proxy   *fake
	now     time.Time
	random  *rand.Rand
	mode    spillway.Mode
	offered [spillway.Criticalities]int // per second
	admits  [spillway.Criticalities]float64
	latency time.Duration
	fails   float64 // share of what is sent
	late    float64
}

// newScene returns a scene with one listener and one cluster of two endpoints.
func newScene(mode spillway.Mode) *scene {
	f := &fake{levels: Levels{
		Mode:      mode,
		Listeners: []Listener{{Name: "main", Address: "127.0.0.1:8000", Open: 12, RejectedBy: resets.Counts{ConnectionRate: 5}}},
		Gates:     []Gate{{Listener: "main", Cluster: "web", Limit: 24, Baseline: 5 * time.Millisecond}},
		Clusters: []Cluster{{
			Name: "web", MaxInFlight: 1024, Budget: &Budget{Left: 100, Capacity: 100},
			Endpoints: []Endpoint{{Address: "10.0.0.1:8080"}, {Address: "10.0.0.2:8080"}},
		}},
	}}
	s := &scene{proxy: f, now: noon, random: rand.New(rand.NewPCG(1, 2)), mode: mode, latency: 20 * time.Millisecond}
	s.Server = NewAt(Config{Collector: collector.New(), Decisions: decisions.New(nil), Source: f, Program: f, Metrics: someMetrics, Version: "test", Access: access.Rules{Words: access.Words{NoChange: "no token for changes is configured: set admin.token_file"}}}, noon)
	s.offered = [...]int{60, 40, 80, 20}
	s.admits = [...]float64{1, 1, 1, 1}
	return s
}

// overload offers five times the capacity.
func (s *scene) overload() {
	s.offered = [...]int{300, 200, 400, 100}
	s.admits = [...]float64{0, 0.35, 0.8, 1}
	if s.mode == spillway.ModeObserve {
		s.latency, s.late, s.fails = 900*time.Millisecond, 0.4, 0.1
		s.proxy.levels.Gates[0].Peak = 1400
	}
}

// rejected returns the event of a rejection.
func rejected(policy string, mode spillway.Mode, err error) spillway.Event {
	e := spillway.Rejection(err)
	e.Policy, e.Mode = policy, mode
	return e
}

var (
	errHigherClass = &spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonHigherClass}
	errQueueFull   = &spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonQueueFull, Advice: "the waiting queue is full"}
)

// second lets a second pass.
func (s *scene) second() {
	s.now = s.now.Add(time.Second)
	g, x := &s.proxy.levels.Gates[0], &s.proxy.levels.Clusters[0]
	for class, n := range s.offered {
		for range n + s.random.IntN(1+n/10) {
			s.request(spillway.Criticality(class) + spillway.Sheddable)
		}
	}
	g.InFlight = 10 + s.random.IntN(14)
	if s.late > 0 {
		g.InFlight *= 50
	}
	g.Peak = max(g.Peak, g.InFlight+3)
	x.InFlight = g.InFlight
	s.sampler.tick(s.now)
}

// say reports an event, and the end of its request to the accounts, as a proxy does.
func (s *scene) say(e spillway.Event) {
	s.sampler.with.Decisions.Before(s.sampler.with.Collector).Observe(e)
	end := accounts.End{Account: accounts.Upstream(e.Outcome), Criticality: e.Call.Criticality}
	switch {
	case e.Rejected && e.Mode == spillway.ModeEnforce, e.Policy == "retry" && errors.Is(e.Err, spillway.ErrRejected):
		end.Account, end.Reason = accounts.Rejected, accounts.Reason(e.Reason)
	case e.Rejected || e.Policy != "retry":
		return
	}
	s.sampler.with.Collector.Accounts().Begin()
	s.sampler.with.Collector.Accounts().End(end)
}

// request reports for one request of a class what a proxy would.
func (s *scene) request(c spillway.Criticality) {
	call := spillway.Call{Key: "web", Criticality: c, Deadline: s.now.Add(500 * time.Millisecond)}
	if s.random.Float64() > s.admits[c.Index()] {
		e := rejected("shed", s.mode, errHigherClass)
		e.Time, e.Call = s.now, call
		s.say(e)
		if s.mode == spillway.ModeEnforce {
			return
		}
	} else {
		s.say(spillway.Event{Time: s.now, Call: call, Policy: "shed", Outcome: spillway.OutcomeServed, Latency: s.latency, Mode: s.mode})
	}
	s.proxy.levels.Gates[0].Admitted++
	s.proxy.levels.Clusters[0].Endpoints[s.random.IntN(2)].Attempts++
	e := spillway.Event{Time: s.now, Call: call, Policy: "retry", Outcome: spillway.OutcomeServed}
	e.Latency = time.Duration(float64(s.latency) * (0.6 + 0.8*s.random.ExpFloat64()))
	switch r := s.random.Float64(); {
	case r < s.late:
		e.Outcome, e.Err, e.Latency = spillway.OutcomeTimedOut, errors.New("late"), 500*time.Millisecond
	case r < s.late+s.fails:
		e.Outcome, e.Err = spillway.OutcomeFailed, errors.New("failed")
	}
	s.say(e)
}

func (s *scene) seconds(n int) {
	for range n {
		s.second()
	}
}

// get sends a GET request from the loopback address.
func get(t *testing.T, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return ask(t, h, http.MethodGet, path, "", headers...)
}

func ask(t *testing.T, h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8001}
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, here), method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8001"
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
