package admin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/access"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/limits"
	"github.com/seed90641741/spillway/internal/admin/settings"
)

// paths are all paths that GET serves.
var paths = []string{
	"/", "/dashboard.js", "/dashboard.css", "/icon.svg", "/uplot.js", "/page.css", "/api/v1/state", "/metrics",
	"/debug/limits", "/debug/queues", "/debug/decisions", "/debug/top", "/debug/config", "/healthz", "/readyz",
}

func TestHosts(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.Allow(access.Rules{Hosts: []string{"proxy.example.com"}})
	h := s.Handler()
	for host, ok := range map[string]bool{
		"127.0.0.1:8001": true, "127.0.0.1": true, "localhost:8001": true, "LOCALHOST": true, "[::1]:8001": true, "[::1]": true,
		"10.1.2.3:8001": true, "proxy.example.com": true, "Proxy.Example.Com:8001": true,
		"evil.example": false, "evil.example:8001": false, "127.0.0.1.evil.example": false, "localhost.evil.example:80": false,
		"proxy.example.com.evil.example": false, "": false, "localhost:80:80": false, "2130706433": false,
	} {
		for _, path := range paths {
			if w := get(t, h, path, "Host", host); (w.Code == http.StatusOK) != ok || !ok && w.Code != http.StatusForbidden {
				t.Errorf("%s of %q: %d", path, host, w.Code)
			}
		}
		if w := ask(t, h, http.MethodPost, "/api/v1/reload", "", "Host", host); !ok && !strings.Contains(w.Body.String(), "host") {
			t.Errorf("POST of %q: %d %s", host, w.Code, w.Body)
		}
	}
}

func TestHeaders(t *testing.T) {
	h := newScene(spillway.ModeEnforce).Handler()
	for _, path := range paths {
		w := get(t, h, path)
		csp := w.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'self';") || strings.Contains(csp, "unsafe") || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %v", path, w.Header())
		}
		if w.Body.Len() == 0 {
			t.Errorf("%s is empty", path)
		}
	}
	if w := get(t, h, "/etc/passwd"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown path: %d", w.Code)
	}
}

// TestGetChangesNothing: neither GET nor any other method than POST changes anything, on
// any path.
func TestGetChangesNothing(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.seconds(3)
	s.Allow(access.Rules{Change: access.File(tokenFile(t, goodToken))})
	h, before := s.Handler(), s.proxy.Levels(s.now)
	beforeTotals := s.sampler.with.Collector.Accounts().Read()
	for _, path := range append(paths, "/api/v1/mode", "/api/v1/reload") {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			w := ask(t, h, method, path, "off", "Authorization", "Bearer "+goodToken)
			if strings.HasPrefix(path, "/api/v1/mode") && w.Code != http.StatusMethodNotAllowed && w.Code != http.StatusNotFound {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
		}
	}
	if after := s.proxy.Levels(s.now); !reflect.DeepEqual(before, after) || s.proxy.reloads != 0 || s.sampler.with.Collector.Accounts().Read() != beforeTotals {
		t.Errorf("%+v is now %+v", before, after)
	}
	one, two := get(t, h, "/metrics").Body.String(), get(t, h, "/metrics").Body.String()
	if one != two {
		t.Error("to look at the metrics changes them")
	}
}

const goodToken = "0123456789abcdef"

func tokenFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestChanges(t *testing.T) {
	bearer := "Bearer " + goodToken
	for name, row := range map[string]struct {
		file, header, path, body string
		status                   int
		says                     string
		mode                     spillway.Mode
	}{
		"no file":       {"-", bearer, "/api/v1/mode", "off", http.StatusForbidden, "no token for changes is configured: set admin.token_file", spillway.ModeObserve},
		"missing file":  {"missing", bearer, "/api/v1/mode", "off", http.StatusForbidden, "cannot be read", spillway.ModeObserve},
		"empty file":    {"", "Bearer ", "/api/v1/mode", "off", http.StatusForbidden, "must have 16 at least", spillway.ModeObserve},
		"short token":   {"abc", "Bearer abc", "/api/v1/mode", "off", http.StatusForbidden, "must have 16 at least", spillway.ModeObserve},
		"no token":      {goodToken, "", "/api/v1/mode", "off", http.StatusUnauthorized, "no token was given", spillway.ModeObserve},
		"another token": {goodToken, "Bearer 0123456789abcdeF", "/api/v1/mode", "off", http.StatusUnauthorized, "not the right one", spillway.ModeObserve},
		"basic":         {goodToken, "Basic " + goodToken, "/api/v1/mode", "off", http.StatusUnauthorized, "no token was given", spillway.ModeObserve},
		"good":          {goodToken + "\n", bearer, "/api/v1/mode", "enforce\n", http.StatusOK, "next read; not changed: clusters[shop].shed.mode: observe", spillway.ModeEnforce},
		"off":           {goodToken, bearer, "/api/v1/mode", "off", http.StatusOK, "mode off", spillway.ModeOff},
		"no mode":       {goodToken, bearer, "/api/v1/mode", "on", http.StatusUnprocessableEntity, "enforce, observe, off", spillway.ModeObserve},
		"long":          {goodToken, bearer, "/api/v1/mode", strings.Repeat("x", 2000), http.StatusBadRequest, "too long", spillway.ModeObserve},
		"reload":        {goodToken, bearer, "/api/v1/reload", "", http.StatusOK, "was read", spillway.ModeObserve},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(spillway.ModeObserve)
			s.proxy.kept = []string{"clusters[shop].shed.mode: observe"}
			var log strings.Builder
			s.logger = slog.New(slog.NewTextHandler(&log, nil))
			switch row.file {
			case "-":
			case "missing":
				s.Allow(access.Rules{Change: access.File(filepath.Join(t.TempDir(), "none"))})
			default:
				s.Allow(access.Rules{Change: access.File(tokenFile(t, row.file))})
			}
			w := ask(t, s.Handler(), http.MethodPost, row.path, row.body, "Authorization", row.header)
			if w.Code != row.status || !strings.Contains(w.Body.String(), row.says) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if s.proxy.levels.Mode != row.mode {
				t.Errorf("the mode is %v, want %v", s.proxy.levels.Mode, row.mode)
			}
			if strings.Contains(log.String()+w.Body.String(), goodToken) || row.status == http.StatusOK && !strings.Contains(log.String(), "changed over the API") {
				t.Errorf("logged:\n%s", log.String())
			}
		})
	}
}

// TestOverrideShows holds that a change by hand shows wherever one looks, until a
// reload drops it.
func TestOverrideShows(t *testing.T) {
	s := newScene(spillway.ModeObserve)
	s.proxy.settings = []settings.Setting{{Field: "mode", Value: "enforce", Given: true}, {Field: "drain_timeout", Value: "30s"}}
	s.Allow(access.Rules{Change: access.File(tokenFile(t, goodToken))})
	h := s.Handler()
	look := func() string {
		s.sampler.tick(s.now)
		return get(t, h, "/api/v1/state").Body.String() + get(t, h, "/debug/config").Body.String()
	}
	const shows, configured = `"file": "observe"`, "the configuration says observe"
	ask(t, h, http.MethodPost, "/api/v1/mode", "enforce", "Authorization", "Bearer "+goodToken)
	if text := look(); !strings.Contains(text, shows) || !strings.Contains(text, configured) {
		t.Errorf("the override does not show:\n%s", text)
	}
	ask(t, h, http.MethodPost, "/api/v1/reload", "", "Authorization", "Bearer "+goodToken)
	if text := look(); strings.Contains(text, shows) || strings.Contains(text, configured) {
		t.Errorf("the override still shows:\n%s", text)
	}
}

// TestChangeSaysWhatItRejects: the answer to a change to mode enforce says what gates that observe have counted.
func TestChangeSaysWhatItRejects(t *testing.T) {
	s := newScene(spillway.ModeObserve)
	s.Allow(access.Rules{Change: access.File(tokenFile(t, goodToken))})
	s.overload()
	for range 12 {
		s.second()
	}
	for _, row := range []struct {
		mode string
		says bool
	}{{"observe", false}, {"enforce", true}, {"enforce", false}, {"observe", false}} {
		w := ask(t, s.Handler(), http.MethodPost, "/api/v1/mode", row.mode, "Authorization", "Bearer "+goodToken)
		says := strings.Contains(w.Body.String(), "\nIn the last 10 s gates in observe mode would have rejected 5") &&
			strings.Contains(w.Body.String(), ": 100 % of SHEDDABLE, ") && strings.Contains(w.Body.String(), "none of CRITICAL_PLUS")
		if says != row.says {
			t.Errorf("mode %s: %s", row.mode, w.Body)
		}
		s.second()
	}
}

func TestChangeThatFails(t *testing.T) {
	s := newScene(spillway.ModeObserve)
	s.Allow(access.Rules{Change: access.File(tokenFile(t, goodToken))})
	s.proxy.failing = errors.New("the file is wrong")
	for _, path := range []string{"/api/v1/mode", "/api/v1/reload"} {
		if w := ask(t, s.Handler(), http.MethodPost, path, "off", "Authorization", "Bearer "+goodToken); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "wrong") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestHealth(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	h := s.Handler()
	for _, row := range []struct {
		err    error
		status int
		says   string
	}{{nil, http.StatusOK, "ready"}, {errors.New("draining"), http.StatusServiceUnavailable, "draining"}, {errors.New("nothing listens"), http.StatusServiceUnavailable, "nothing listens"}} {
		s.proxy.unready = row.err
		if w := get(t, h, "/readyz"); w.Code != row.status || !strings.Contains(w.Body.String(), row.says) {
			t.Errorf("%v: %d %s", row.err, w.Code, w.Body)
		}
		if w := get(t, h, "/healthz"); w.Code != http.StatusOK {
			t.Errorf("%v: not healthy", row.err)
		}
		s.sampler.tick(s.now)
		if s.sampler.state.Load().Ready != (row.err == nil) {
			t.Errorf("%v: the state says otherwise", row.err)
		}
	}
}

func TestDebug(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.proxy.levels.Clusters[0].Queue = &Queue{Busy: 15, Places: 16, Waiting: 3, Waits: Waits{4, 8e9}}
	s.proxy.levels.Clusters[0].Endpoints[1].Down = "unhealthy: connection refused"
	s.proxy.levels.Tuned = []Tuned{{Name: "web.max_in_flight", Value: 64, Moves: []Move{{Time: noon, Why: "it is slow"}}}}
	s.proxy.levels.Gates[0].Keys = []limits.Key{
		{Name: "/report", InFlight: 5, Limit: 18.25, Shared: true, Bound: true},
		{Name: "/down", InFlight: 1, Limit: 4.0 / 3, Bound: true, Unknown: true},
	}
	s.overload()
	s.seconds(3)
	call := spillway.Call{Key: "web", Customer: "a\nb\x1b[31m" + strings.Repeat("c", 300), Criticality: spillway.Sheddable}
	s.sampler.with.Decisions.Observe(spillway.Event{Time: noon.Add(time.Hour), Policy: "shed", Rejected: true, Err: errQueueFull, Call: call})
	for path, says := range map[string][]string{
		"/debug/limits":        {"LISTENER", "main      web", "24", "18.25 shared", "1.333 unknown ", "down: unhealthy: connection refused", "web.max_in_flight", "it is slow"},
		"/debug/queues":        {"turn, 15 of 16 in flight", "2s"},
		"/debug/decisions?n=1": {"13:00:00.000", "SHEDDABLE", "the waiting queue is full", "a�b�[31mcccc"},
	} {
		w := get(t, s.Handler(), path)
		for _, text := range says {
			if !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s does not say %q:\n%s", path, text, w.Body)
			}
		}
	}
	for path, want := range map[string]int{"/debug/decisions?n=1": 1, "/debug/decisions": 100} {
		if n := strings.Count(get(t, s.Handler(), path).Body.String(), "\n2026-11-20 1"); n != want {
			t.Errorf("%s has %d decisions, want %d", path, n, want)
		}
	}
	for _, n := range []string{"0", "-1", "2001", "x", "1e1"} {
		if w := get(t, s.Handler(), "/debug/decisions?n="+n); w.Code != http.StatusBadRequest {
			t.Errorf("n=%s: %d", n, w.Code)
		}
	}
}

// quiet waits until no more goroutines run than did before the test.
func quiet(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
				return
			}
		}
	})
}

// TestStreams opens more streams than one address may have, on real connections.
func TestStreams(t *testing.T) {
	quiet(t)
	s := newScene(spillway.ModeEnforce)
	s.seconds(3)
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func() *http.Response {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/v1/stream", nil)
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	all := make([]*http.Response, 0, mostStreams)
	for range mostStreams {
		all = append(all, open())
	}
	if resp := open(); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %s", resp.Status)
	} else {
		resp.Body.Close()
	}
	s.second()
	for _, resp := range all {
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		var events []string
		for len(events) < 2 && lines.Scan() {
			if e, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				events = append(events, e)
			}
		}
		if strings.Join(events, " ") != "history tick" {
			t.Errorf("events %q, %v", events, lines.Err())
		}
		resp.Body.Close()
	}
	for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
		s.sampler.mu.Lock()
		left := len(s.sampler.streams)
		s.sampler.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d streams are left", left)
		}
	}
	open().Body.Close()
}

// TestSlowBrowser: a browser that does not read misses ticks, and does not block other
// browsers.
func TestSlowBrowser(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	_, ticks, err := s.sampler.follow("192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.sampler.leave(ticks)
	s.seconds(backlog + 7)
	if len(ticks) != backlog {
		t.Errorf("%d ticks wait, want %d", len(ticks), backlog)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.offered = [spillway.Criticalities]int{}
	s.seconds(history + 50)
	if len(s.sampler.rows) != history || len(s.sampler.samples) != minuteTicks+1 {
		t.Errorf("%d rows and %d samples are kept", len(s.sampler.rows), len(s.sampler.samples))
	}
}

// TestServer lets a Server tick and end, with a stream open.
func TestServer(t *testing.T) {
	quiet(t)
	f := newScene(spillway.ModeEnforce).proxy
	s := New(Config{Collector: collector.New(), Source: f, Program: f})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
	})
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, 1<<20)
	for seen := 0; seen < 2 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "event: ") {
			seen++
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	serving.Wait()
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Error(err)
	}
}

// TestStreamOutlivesTimeouts would fail if the time that a request or an answer may take
// ended streams.
func TestStreamOutlivesTimeouts(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	server := httptest.NewUnstartedServer(s.Handler())
	server.Config.ReadTimeout, server.Config.WriteTimeout = 500*time.Millisecond, 500*time.Millisecond
	server.Start()
	defer server.Close()
	resp, err := http.Get(server.URL + "/api/v1/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	<-time.After(time.Second)
	s.second()
	for lines.Scan() {
		if lines.Text() == "event: tick" {
			return
		}
	}
	t.Errorf("the stream has ended: %v", lines.Err())
}
