package httpproxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
)

// guarded starts a proxy with narrow limits in front of an echo server.
func guarded(t testing.TB, change ...func(*config.Listener)) *Proxy {
	t.Helper()
	address, _ := upstreamAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if message.IsGRPC(r) {
			echoing(w, r)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}))
	c := config.ForUpstream("127.0.0.1:0", address)
	c.Mode = "enforce"
	l := &c.Listeners[0]
	l.HeaderTimeout, l.BodyTimeout, l.IdleTimeout, l.WriteTimeout = 300*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond, time.Second
	l.MaxHeaderBytes, l.MaxBodyBytes, l.MaxStreams = 4<<10, 10_000, 10
	for _, f := range change {
		f(l)
	}
	return start(t, c)
}

// TestHostileClients runs clients that misbehave in different ways at the same time. Each must
// be rejected clearly or disconnected, and other clients must be served normally.
func TestHostileClients(t *testing.T) {
	quiet(t)
	p := guarded(t)
	var all sync.WaitGroup
	for name, row := range map[string]struct {
		sent string
		want string // how the answer begins; empty: there is none, or any
	}{
		"no HTTP":                    {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "HTTP/1.1 400 "},
		"a head that is too long":    {"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 20_000) + "\r\n\r\n", "HTTP/1.1 431 "},
		"a flood of headers":         {"GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 5000) + "\r\n", "HTTP/1.1 431 "},
		"a line that is too long":    {"GET /" + strings.Repeat("y", 20_000) + " HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 431 "},
		"a body that is too long":    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10001\r\n\r\n", "HTTP/1.1 413 "},
		"a chunk that is too long":   {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4e20\r\n" + strings.Repeat("y", 20_000) + "\r\n0\r\n\r\n", "HTTP/1.1 413 "},
		"a length beyond numbers":    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", "HTTP/1.1 400 "},
		"a negative length":          {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400 "},
		"two lengths":                {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", "HTTP/1.1 400 "},
		"a chunk that is none":       {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", "HTTP/1.1 400 "},
		"another encoding":           {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nzz\r\n\r\n", "HTTP/1.1 501 "},
		"no host":                    {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
		"half a head":                {"GET / HTTP/1.1\r\nHost: a\r\n", ""},
		"nothing":                    {"", ""},
		"half a body":                {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhal", "HTTP/1.1 408 "},
		"a preface and nothing":      {http2.ClientPreface, ""},
		"a frame that is too long":   {http2.ClientPreface + gatewaytest.Frame(0, 0, 1, strings.Repeat("y", 1<<15)), ""},
		"a flood of pings":           {http2.ClientPreface + gatewaytest.Frame(4, 0, 0, "") + strings.Repeat(gatewaytest.Frame(6, 0, 0, "12345678"), 2000), ""},
		"a flood of resets":          {http2.ClientPreface + gatewaytest.Frame(4, 0, 0, "") + resetStreams(500), ""},
		"a flood of settings":        {http2.ClientPreface + strings.Repeat(gatewaytest.Frame(4, 0, 0, "\x00\x03\x00\x00\x00\x64"), 2000), ""},
		"headers that do not end":    {http2.ClientPreface + gatewaytest.Frame(4, 0, 0, "") + gatewaytest.Frame(1, 0, 1, "") + strings.Repeat(gatewaytest.Frame(9, 0, 1, "\x00\x01a\x01b"), 5000), ""},
		"data without a stream":      {http2.ClientPreface + gatewaytest.Frame(4, 0, 0, "") + gatewaytest.Frame(0, 0, 9, "data"), ""},
		"a window beyond numbers":    {http2.ClientPreface + gatewaytest.Frame(4, 0, 0, "") + gatewaytest.Frame(8, 0, 0, "\x7f\xff\xff\xff"), ""},
		"an index that is not there": {http2.ClientPreface + gatewaytest.Frame(4, 0, 0, "") + gatewaytest.Frame(1, 5, 1, "\xff\xff\xff\x0f"), ""},
	} {
		c := dial(t, p)
		all.Go(func() { _, _ = io.WriteString(c, row.sent) }) // it may be hung up on in the middle
		all.Go(func() {
			got, err := io.ReadAll(io.LimitReader(c, 1<<20))
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				t.Errorf("%s: it is not hung up on", name)
			}
			if !strings.HasPrefix(string(got), row.want) {
				t.Errorf("%s: answered %.100q, want %q", name, got, row.want)
			}
		})
	}
	for range 10 {
		servesOthers(t, p)
	}
	all.Wait()
	servesOthers(t, p)
}

// servesOthers has healthy clients ask, by each protocol.
func servesOthers(t *testing.T, p *Proxy) {
	t.Helper()
	url := "http://" + p.Addr("").String()
	for _, second := range []bool{false, true} {
		if resp, body := do(t, client(t, second), http.MethodPost, url, "hello"); resp.StatusCode != http.StatusOK || body != "hello" {
			t.Errorf("another client gets %d %q", resp.StatusCode, body)
		}
	}
	if status, _, body := ask(t, client(t, true), url, "hello"); status != "0" || body != frame("hello") {
		t.Errorf("another call gets status %s, %q", status, body)
	}
}

// resetStreams opens many streams, and resets each at once.
func resetStreams(n int) string {
	var b strings.Builder
	for i := range n {
		id := uint32(2*i + 1)
		b.WriteString(gatewaytest.RequestFrame(http2.FlagHeadersEndStream, id, "GET", "/"))
		b.WriteString(gatewaytest.CancelFrame(id))
	}
	return b.String()
}

// TestManyHalfOpenConnections: most of the allowed connections are held by silent clients, and
// the rest still serve.
func TestManyHalfOpenConnections(t *testing.T) {
	quiet(t)
	p := guarded(t)
	held := make([]net.Conn, 200)
	for i := range held {
		held[i] = dial(t, p)
		fmt.Fprint(held[i], "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n"[:i%45])
	}
	servesOthers(t, p)
	for _, c := range held {
		if _, err := io.Copy(io.Discard, c); err != nil {
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				t.Fatal("one is not hung up on")
			}
		}
	}
	servesOthers(t, p)
}

// FuzzCalls sends gRPC calls with arbitrary frames and messages, and answers with arbitrary
// status and pushback. A healthy call at the same time must be served.
func FuzzCalls(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x05hello"), "application/grpc", "1S", byte(0), uint16(0))
	f.Add([]byte("\x01\xff\xff\xff\xff"), "application/grpc+proto", "99999999H", byte(1), uint16(7))
	f.Add([]byte(""), "application/grpc;x", "-1m", byte(2), uint16(3))
	f.Add(bytes.Repeat([]byte("y"), 20_000), "application/grpc", "", byte(0), uint16(5))
	p := guarded(f, func(l *config.Listener) {
		// On a busy machine, the healthy client can need longer than 300 ms from its connection
		// to its request. The others end before.
		l.HeaderTimeout, l.IdleTimeout = 5*time.Second, 5*time.Second
	})
	other := client(f, true)
	f.Fuzz(func(t *testing.T, message []byte, kind, timeout string, flags byte, cut uint16) {
		head := gatewaytest.Fields(":method", "POST", ":scheme", "http", ":path", "/a.B/C", ":authority", "a",
			"content-type", kind, "grpc-timeout", timeout, "te", "trailers")
		if len(head) > 1<<13 {
			return
		}
		sent := http2.ClientPreface + gatewaytest.Frame(4, 0, 0, "") + gatewaytest.Frame(1, http2.Flags(4|flags&1), 1, head)
		for len(message) > 0 {
			n := min(len(message), 16<<10)
			sent += gatewaytest.Frame(0, http2.Flags(flags&8), 1, string(message[:n]))
			message = message[n:]
		}
		sent += gatewaytest.Frame(0, 1, 1, "")
		if at := len(sent) - int(cut); cut > 0 && at > len(http2.ClientPreface) {
			sent = sent[:at]
		}
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Addr("").String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		go func() {
			_, _ = io.WriteString(c, sent)
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		_, err = io.Copy(io.Discard, io.LimitReader(c, 1<<20))
		if late, ok := err.(net.Error); ok && late.Timeout() {
			t.Error("the connection stays open")
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.Addr("").String()+"/a.B/C", strings.NewReader(frame("hello")))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/grpc")
		resp, err := other.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != frame("hello") || resp.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("another call gets %q, %v, status %q", body, err, resp.Trailer.Get("Grpc-Status"))
		}
	})
}
