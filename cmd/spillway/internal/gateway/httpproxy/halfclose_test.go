package httpproxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/logs"
)

// upgrade upgrades a connection to a proxy with an early text.
func upgrade(t *testing.T, p *Proxy, early string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c := dial(t, p)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"+early)
	in := bufio.NewReader(c)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	return c, in
}

// upgraded upgrades a connection to a proxy with an early text, sends another one, and closes the sending side.
func upgraded(t *testing.T, p *Proxy, early, text string) *bufio.Reader {
	t.Helper()
	c, in := upgrade(t, p, early)
	fmt.Fprint(c, text)
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	return in
}

// switching returns a handler that upgrades, reads all, and then does something.
func switching(then func(c net.Conn, text string, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		text, err := io.ReadAll(in)
		then(c, string(text), err)
	})
}

// TestHalfClosedUpgrades: a client of an upgraded connection may close its side, as a terminal does at
// the end of its input. The upstream learns that, and its answer arrives.
func TestHalfClosedUpgrades(t *testing.T) {
	quiet(t)
	_, p := front(t, switching(func(c net.Conn, text string, err error) { fmt.Fprintf(c, "%q, %v", text, err) }), nil)
	got, err := io.ReadAll(upgraded(t, p, "", "all of it"))
	if want := `"all of it", <nil>`; string(got) != want || err != nil {
		t.Errorf("the answer to a client that has closed its side is %q, %v, want %s", got, err, want)
	}
}

// TestUpgradesWithEarlyBytes: what a client sends together with its request arrives.
func TestUpgradesWithEarlyBytes(t *testing.T) {
	quiet(t)
	_, p := front(t, switching(func(c net.Conn, text string, err error) { fmt.Fprintf(c, "%q, %v", text, err) }), nil)
	got, err := io.ReadAll(upgraded(t, p, "all ", "of it"))
	if want := `"all of it", <nil>`; string(got) != want || err != nil {
		t.Errorf("the answer is %q, %v, want %s", got, err, want)
	}
}

// TestHalfClosedUpgradesEnd: a connection whose client has closed its side, and whose upstream says
// nothing, is idle.
func TestHalfClosedUpgradesEnd(t *testing.T) {
	quiet(t)
	release := make(chan struct{})
	_, p := front(t, switching(func(net.Conn, string, error) { <-release }), func(c *config.Config) { c.Listeners[0].StreamIdle = 200 * time.Millisecond })
	defer close(release)
	if got, err := io.ReadAll(upgraded(t, p, "", "")); len(got) > 0 || err != nil {
		t.Errorf("%q, %v, want that an idle connection ends", got, err)
	}
	for end := time.Now().Add(10 * time.Second); p.Stats(time.Now()).Clients["127.0.0.1:0"].Requests > 0; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the request goes on when its connection is closed")
		}
	}
}

// TestUpgradesInTheLog: when the proxy has closed the connections that were upgraded, the access log has their lines.
func TestUpgradesInTheLog(t *testing.T) {
	quiet(t)
	const n = 20
	_, p := front(t, switching(func(net.Conn, string, error) {}), func(c *config.Config) { c.DrainTimeout = time.Millisecond })
	name := filepath.Join(t.TempDir(), "access.log")
	log, err := logs.OpenAccessLog(&config.Access{File: name, MaxBytes: 1 << 20, Sample: 1, SampleLost: 1, Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	p.SetAccessLog(log)
	for range n {
		upgrade(t, p, "")
	}
	if err := p.Drain(t.Context()); err == nil {
		t.Error("the drain waited for connections that stay open")
	}
	p.SetAccessLog(nil).Close()
	lines, err := os.ReadFile(name)
	if got := bytes.Count(lines, []byte("\n")); err != nil || got != n {
		t.Errorf("%d lines about %d connections, %v", got, n, err)
	}
}
