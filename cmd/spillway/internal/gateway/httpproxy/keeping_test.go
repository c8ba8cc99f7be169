package httpproxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// A keeper is an endpoint that answers a request with how many its connection has had. It closes its first connection without a
// word when that has been idle.
type keeper struct {
	sync.Mutex
	first  net.Conn
	closed chan struct{} // the proxy has closed it, too
}

// serve serves one connection.
func (k *keeper) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for n := 1; ; n++ {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		length, _ := io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Requests: "+strconv.Itoa(n)+"\r\nX-Length: "+strconv.FormatInt(length, 10)+"\r\n\r\n")
		k.Lock()
		first := k.first == nil
		if first {
			k.first = c
		}
		k.Unlock()
		if first {
			<-time.After(20 * time.Millisecond)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			close(k.closed)
			return
		}
	}
}

// TestRequestsThatMustNotBeRepeated take a new connection when an endpoint may be closing the kept one: the endpoint has closed
// another after that time. Others take the kept one.
func TestRequestsThatMustNotBeRepeated(t *testing.T) {
	quiet(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{closed: make(chan struct{})}
	var serving sync.WaitGroup
	t.Cleanup(func() { _ = ln.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { k.serve(c) })
		}
	})
	c := config.ForUpstream("127.0.0.1:0", ln.Addr().String())
	p := start(t, c)
	x, url, began := client(t, false), "http://"+p.Addr("").String(), time.Now()
	do(t, x, http.MethodGet, url, "")
	<-k.closed
	idle := time.Since(began) // at least as long as the endpoint has kept it
	for name, row := range map[string]struct {
		method string
		body   func() io.Reader
		length int
		key    string
		reused bool
	}{
		"empty":      {"POST", func() io.Reader { return nil }, 0, "", false},
		"short":      {"POST", func() io.Reader { return strings.NewReader("abc") }, 3, "", false},
		"long":       {"POST", func() io.Reader { return strings.NewReader(strings.Repeat("a", 300_000)) }, 300_000, "", false},
		"chunked":    {"POST", func() io.Reader { return io.MultiReader(strings.NewReader(strings.Repeat("a", 300_000))) }, 300_000, "", false},
		"short PUT":  {"PUT", func() io.Reader { return io.MultiReader(strings.NewReader("abc")) }, 3, "", false},
		"idempotent": {"POST", func() io.Reader { return nil }, 0, "1", true},
		"GET":        {"GET", func() io.Reader { return nil }, 0, "", true},
	} {
		do(t, x, http.MethodGet, url, "") // which leaves a kept connection
		<-time.After(idle)
		r, err := http.NewRequestWithContext(t.Context(), row.method, url, row.body())
		if err != nil {
			t.Fatal(err)
		}
		if row.key != "" {
			r.Header.Set("Idempotency-Key", row.key)
		}
		resp, err := x.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		reused := resp.Header.Get("X-Requests") != "1"
		if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Length") != strconv.Itoa(row.length) || reused != row.reused {
			t.Errorf("%s: %s, connection reused: %v, the endpoint has %s bytes, want %d", name, resp.Status, reused, resp.Header.Get("X-Length"), row.length)
		}
	}
}
