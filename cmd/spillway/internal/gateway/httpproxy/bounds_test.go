package httpproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
)

var swallow = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, r.Body)
	fmt.Fprint(w, n)
})

// TestBodiesHaveAMinimumRate: a client that sends below the minimum rate is disconnected,
// however often it sends a byte. The bodies that come at the rate for longer than body_timeout are
// in package clients, in virtual time.
func TestBodiesHaveAMinimumRate(t *testing.T) {
	quiet(t)
	_, p := front(t, swallow, func(c *config.Config) {
		c.Listeners[0].BodyTimeout, c.Listeners[0].MinRate = 200*time.Millisecond, 1000
		c.Routes = []config.Route{{Path: "/patient/", BodyTimeout: 20 * time.Second}, {Path: "/quick/", MaxBodyTime: 300 * time.Millisecond}, {}}
	})
	for _, row := range []struct {
		path   string
		length int
		piece  int // every 10 ms
		want   string
	}{
		{"/", 1000, 1, "HTTP/1.1 408 "},    // kept before it is sent on
		{"/", 1 << 20, 1, "HTTP/1.1 408 "}, // sent on as it comes
		{"/patient/", 60, 1, "HTTP/1.1 200 "},
		{"/quick/", 100_000, 1000, "HTTP/1.1 408 "}, // fast enough, and too long
	} {
		c := dial(t, p)
		go func() {
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", row.path, row.length)
			for sent := 0; sent < row.length; sent += row.piece {
				if _, err := c.Write(make([]byte, row.piece)); err != nil {
					return
				}
				<-time.After(10 * time.Millisecond) // a client that is slow
			}
		}()
		answer := make([]byte, len(row.want))
		if _, err := io.ReadFull(c, answer); string(answer) != row.want {
			t.Errorf("%+v: %q, %v", row, answer, err)
		}
	}
}

// TestUnchosenProtocols: a connection is upgraded only to protocols that the route allows.
func TestUnchosenProtocols(t *testing.T) {
	quiet(t)
	_, p := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			w.Header().Set("X-Upgrade", r.Header.Get("Upgrade"))
		}
	}), func(c *config.Config) {
		c.Routes = []config.Route{{Path: "/other/", Upgrades: []string{"other/1"}}, {Path: "/healthz", Exempt: true}, {}}
	})
	for _, row := range []struct {
		line, upgrade string
		status        int
		sent          string
	}{
		{"GET / HTTP/1.1", "websocket", 200, "websocket"},
		{"GET / HTTP/1.1", "WebSocket", 200, "WebSocket"},
		{"GET / HTTP/1.1", "h2c", 200, ""},
		{"GET / HTTP/1.1", "websocket, h2c", 200, ""},
		{"GET / HTTP/1.1", "other/1", 200, ""},
		{"GET /other/ HTTP/1.1", "other/1", 200, "other/1"},
		{"GET /other/ HTTP/1.1", "websocket", 200, ""},
		{"GET /healthz HTTP/1.1", "websocket", 200, ""},
		{"CONNECT a:80 HTTP/1.1", "", 405, ""},
		{"CONNECT / HTTP/1.1", "", 405, ""},
	} {
		c := dial(t, p)
		fmt.Fprint(c, row.line+"\r\nHost: a:80\r\n")
		if row.upgrade != "" {
			fmt.Fprint(c, "Connection: Upgrade\r\nUpgrade: "+row.upgrade+"\r\n")
		}
		fmt.Fprint(c, "\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != row.status || resp.Header.Get("X-Upgrade") != row.sent {
			t.Errorf("%+v: %v, %v", row, resp, err)
		}
	}
}

// TestSilentEventsGoOn: a stream of events may be silent for longer than a call of gRPC whose client has not ended it, also by
// HTTP/2.
func TestSilentEventsGoOn(t *testing.T) {
	quiet(t)
	const idle = 200 * time.Millisecond
	url, _ := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(4 * idle):
			fmt.Fprint(w, "data: late\n\n")
		case <-r.Context().Done():
		}
	}), func(c *config.Config) { c.Listeners[0].StreamIdle = idle })
	for _, second := range []bool{false, true} {
		resp, err := client(t, second).Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); string(got) != "data: late\n\n" || err != nil {
			t.Errorf("HTTP/2 %v: %q, %v", second, got, err)
		}
		_ = resp.Body.Close()
	}
}

// TestUnreadCallsEnd: a client that has ended its side of a call of gRPC, and does not read, is not waited for forever. A
// call whose upstream says nothing goes on.
func TestUnreadCallsEnd(t *testing.T) {
	quiet(t)
	left := make(chan string, 2)
	_, p := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/large" {
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 64<<10)) // until the context says that it is in vain
			}
		}
		<-r.Context().Done()
		left <- r.URL.Path
	}), func(c *config.Config) { c.Listeners[0].StreamIdle = 300 * time.Millisecond })
	c := dial(t, p)
	settings := gatewaytest.Frame(http2.FrameSettings, 0, 0, "\x00\x04\x00\x00\x00\x00") // SETTINGS_INITIAL_WINDOW_SIZE 0
	call := func(stream uint32, path string) string {
		head := gatewaytest.RequestFrame(0, stream, "POST", path, "content-type", "application/grpc", "te", "trailers")
		return head + gatewaytest.Frame(http2.FrameData, http2.FlagDataEndStream, stream, frame("hello"))
	}
	fmt.Fprint(c, http2.ClientPreface+settings+call(1, "/silent")+call(3, "/large"))
	go func() { _, _ = io.Copy(io.Discard, c) }() // what comes all the same, until the end of the test
	select {
	case path := <-left:
		if path != "/large" {
			t.Errorf("%s ends", path)
		}
	case <-time.After(10 * time.Second):
		t.Error("an answer that nobody reads does not end")
	}
}

// TestIdleStreamsEnd: an idle upgraded connection and an idle gRPC call end; a connection
// that transfers something now and then does not.
func TestIdleStreamsEnd(t *testing.T) {
	quiet(t)
	const idle = 400 * time.Millisecond
	url, p := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if message.IsGRPC(r) {
			w.Header().Set("Content-Type", "application/grpc")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(c, c)
	}), func(c *config.Config) { c.Listeners[0].StreamIdle = idle })
	for _, talks := range []bool{false, true} {
		c := dial(t, p)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		in := bufio.NewReader(c)
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(resp, err)
		}
		if talks {
			last := time.Now()
			for range 14 {
				fmt.Fprint(c, "x")
				if _, err := in.ReadByte(); err != nil && time.Since(last) < idle { // the machine was not too slow
					t.Error("a connection that talks is closed:", err)
				}
				last = time.Now()
				<-time.After(idle / 10) // a client that says little
			}
		}
		began := time.Now()
		if _, err := in.ReadByte(); err == nil || time.Since(began) > 10*time.Second {
			t.Errorf("talks %v: an idle connection stays open: %v", talks, err)
		}
	}
	body, sent := io.Pipe()
	defer sent.Close()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	r.RequestURI = ""
	r.Header.Set("Content-Type", "application/grpc")
	began := time.Now()
	resp, err := client(t, true).Do(r)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if took := time.Since(began); took < idle*7/10 || took > 10*time.Second {
		t.Errorf("a silent call ends after %v: %v", took, err)
	}
}

// TestHeadersFromOutside: internal headers from clients are removed.
func TestHeadersFromOutside(t *testing.T) {
	quiet(t)
	for boundary, want := range map[string]bool{"edge": false, "internal": true} {
		var got http.Header
		url, _ := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }), func(c *config.Config) {
			c.Listeners[0].Boundary, c.Listeners[0].Peers = boundary, []string{"127.0.0.0/8"}
			c.Routes = []config.Route{{Customer: config.Customer{Header: "X-Forwarded-User", Trusted: true}}}
		})
		names := []string{
			"X-Envoy-Internal", "X-Envoy-Upstream-Rq-Timeout-Ms", "X-Real-Ip", "X-Forwarded-Client-Cert", "X-Forwarded-Port", "X_Real_Ip", "X_envoy_Internal", "X-Request-Start",
		}
		send := []string{"X-Forwarded-User", "acme", "X-Other", "1", "X-Requested-With", "1"}
		for _, name := range names {
			send = append(send, name, "x")
		}
		do(t, client(t, false), http.MethodGet, url, "", send...)
		for _, name := range names {
			if _, there := got[http.CanonicalHeaderKey(name)]; there != want {
				t.Errorf("%s: %s goes through: %v, want %v", boundary, name, there, want)
			}
		}
		for _, name := range []string{"X-Forwarded-User", "X-Other", "X-Requested-With"} {
			if got.Get(name) == "" {
				t.Errorf("%s: %s does not go through", boundary, name)
			}
		}
	}
}

func TestOnlyPeersConnect(t *testing.T) {
	quiet(t)
	for network, want := range map[string]bool{"127.0.0.0/8": true, "192.0.2.0/24": false} {
		_, p := front(t, swallow, func(c *config.Config) { c.Listeners[0].Peers = []string{network} })
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Addr("").String())
		if err == nil {
			fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			_, err = http.ReadResponse(bufio.NewReader(c), nil)
			_ = c.Close()
		}
		if (err == nil) != want {
			t.Errorf("peers %s: %v", network, err)
		}
		for name, reset := range p.Stats(time.Now()).Resets {
			if reset.Peers != map[bool]uint64{false: 1}[want] || reset.Total() != reset.Peers {
				t.Errorf("peers %s: %s has reset %+v", network, name, reset)
			}
		}
	}
}

// TestBodiesAreKeptWithinTheBudget: only received bytes take memory, not declared ones, and at
// the limit bodies are streamed.
func TestBodiesAreKeptWithinTheBudget(t *testing.T) {
	quiet(t)
	t.Cleanup(func() { resources.Memory.SetLimit(0) })
	url, p := front(t, swallow, func(c *config.Config) { c.MaxBuffered = 100_000 })
	silent := make([]net.Conn, 20)
	for i := range silent {
		silent[i] = dial(t, p)
		fmt.Fprint(silent[i], "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n")
	}
	until(t, "all wait for their body", func() bool { // net/http says nothing of it
		return p.Stats(time.Now()).Clients["127.0.0.1:0"].Waiting == len(silent)
	})
	if used := resources.Memory.Used(); used > int64(len(silent)*4<<10) {
		t.Errorf("%d bytes are taken for bodies that have not come", used)
	}
	for range 5 {
		for _, second := range []bool{false, true} {
			if resp, text := do(t, client(t, second), http.MethodPost, url, strings.Repeat("x", 60_000)); resp.StatusCode != http.StatusOK || text != "60000" {
				t.Errorf("HTTP/2 %v: %d %q", second, resp.StatusCode, text)
			}
		}
	}
	if used := resources.Memory.Used(); used > 100_000 || used+60_000 <= 100_000 {
		t.Errorf("%d bytes: the limit was not reached, or exceeded", used)
	}
	for _, c := range silent {
		_ = c.Close()
	}
	until(t, "no byte is kept for clients that have left", func() bool { return resources.Memory.Used() == 0 })
}
