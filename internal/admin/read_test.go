package admin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/access"
)

// TestWhoMayRead asks for all there is, from here and from elsewhere, with and without
// tokens.
func TestWhoMayRead(t *testing.T) {
	const readToken = "fedcba9876543210"
	here, there := &net.TCPAddr{IP: net.IPv6loopback, Port: 1}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 1}
	socket := &net.UnixAddr{Name: "/run/spillway.sock", Net: "unix"}
	public, metrics, private := "/healthz /readyz", "/metrics /", "/api/v1/state /debug/limits /debug/queues /debug/decisions /debug/top /debug/config"
	for _, row := range []struct {
		read, change bool // there is a token
		local        net.Addr
		bearer       string
		metrics      int
		private      int
	}{
		{false, false, here, "", 200, 200},
		{false, false, socket, "", 200, 200},
		{false, false, there, "", 200, 403},
		{false, false, nil, "", 200, 403},
		{false, true, there, "", 200, 401},
		{false, true, there, "Bearer " + goodToken, 200, 200},
		{false, true, there, goodToken, 200, 401},
		{false, true, there, "bearer " + goodToken, 200, 401},
		{true, true, here, "", 401, 401},
		{true, true, there, "Bearer " + readToken, 200, 200},
		{true, true, there, "Bearer " + goodToken, 200, 200},
		{true, false, there, "Bearer " + goodToken, 401, 401},
		{true, true, there, "Basic " + readToken, 401, 401},
	} {
		s := newScene(spillway.ModeObserve)
		a := access.Rules{}
		if row.read {
			a.Read = access.File(tokenFile(t, readToken))
		}
		if row.change {
			a.Change = access.File(tokenFile(t, goodToken))
		}
		s.Allow(a)
		for paths, want := range map[string]int{public: 200, metrics: row.metrics, private: row.private} {
			for path := range strings.FieldsSeq(paths) {
				r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, row.local), http.MethodGet, path, nil)
				r.Host = "127.0.0.1:8001"
				if row.bearer != "" {
					r.Header.Set("Authorization", row.bearer)
				}
				w := httptest.NewRecorder()
				if s.Handler().ServeHTTP(w, r); w.Code != want {
					t.Errorf("%+v: %s is answered with %d, want %d", row, path, w.Code, want)
				}
			}
		}
	}
}

// TestReadersCannotChange: the token for reading is none for changes.
func TestReadersCannotChange(t *testing.T) {
	const readToken = "fedcba9876543210"
	s := newScene(spillway.ModeObserve)
	s.Allow(access.Rules{Change: access.File(tokenFile(t, goodToken)), Read: access.File(tokenFile(t, readToken))})
	if w := ask(t, s.Handler(), http.MethodPost, "/api/v1/mode", "off", "Authorization", "Bearer "+readToken); w.Code != http.StatusUnauthorized {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestForeignSites(t *testing.T) {
	for _, row := range []struct {
		headers []string
		want    int
	}{
		{nil, 200}, // no browser
		{[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		{[]string{"Sec-Fetch-Site", "none"}, 200},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Sec-Fetch-Site", "same-site"}, 403},
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200}, // a link
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{[]string{"Origin", "http://127.0.0.1:8001"}, 200},
		{[]string{"Origin", "http://127.0.0.1:9999"}, 403},
		{[]string{"Origin", "https://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
	} {
		s := newScene(spillway.ModeObserve)
		if w := get(t, s.Handler(), "/api/v1/state", row.headers...); w.Code != row.want {
			t.Errorf("%v: %d, want %d", row.headers, w.Code, row.want)
		}
	}
}

func TestStreamsOfOneAddressAreBounded(t *testing.T) {
	s := newScene(spillway.ModeObserve)
	for i := range maxStreams {
		if _, _, err := s.sampler.follow("192.0.2.1"); (err == nil) != (i < mostStreams) {
			t.Errorf("stream %d of one address: %v", i, err)
		}
	}
	for i := range maxStreams - mostStreams {
		if _, _, err := s.sampler.follow(fmt.Sprintf("192.0.2.%d", 10+i/mostStreams)); err != nil {
			t.Errorf("stream %d of others: %v", i, err)
		}
	}
	if _, _, err := s.sampler.follow("192.0.2.99"); err == nil {
		t.Error("there are more streams than there may be")
	}
	for remote, want := range map[string]string{
		"192.0.2.1:5": "192.0.2.1", "[2001:db8::1]:5": "2001:db8::/64", "[2001:db8::ffff:1]:5": "2001:db8::/64", "[::ffff:192.0.2.1]:5": "192.0.2.1", "@": "@",
	} {
		if got := addressOf(&http.Request{RemoteAddr: remote}); got != want {
			t.Errorf("%s is of %s, want %s", remote, got, want)
		}
	}
}
