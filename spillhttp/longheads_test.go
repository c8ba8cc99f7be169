package spillhttp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/ingress"
)

// lines is a head of so many lines.
func lines(n int) []byte {
	var b bytes.Buffer
	b.WriteString("GET / HTTP/1.1\r\nHost: backend.example\r\n")
	for i := range n {
		fmt.Fprintf(&b, "x%d: 1\r\n", i)
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// send sends a request on a new connection, and returns the status of its answer, or 0 if the connection is reset.
func send(t *testing.T, dial func() (net.Conn, error), request []byte) (status int) {
	t.Helper()
	c := must(dial())
	defer c.Close()
	go func() { _, _ = c.Write(request) }() // the server may stop reading
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// longHeads are heads that are charged, and one that is not, with the status of the answer where they are read.
var longHeads = []struct {
	lines, status int
	charged       bool
}{
	{8000, http.StatusRequestHeaderFieldsTooLarge, true}, {4000, http.StatusNoContent, true}, {900, http.StatusNoContent, false},
}

// charged has the heads of a row of longHeads come twice to a server that charges them, at once. net/http closes a connection half a
// second after it has rejected a head.
func charged(t *testing.T, row int, dial func() (net.Conn, error)) {
	t.Helper()
	const each = 15
	x, got := longHeads[row], make(map[int]int)
	head, short := lines(x.lines), lines(100)
	for range 2 {
		var all sync.WaitGroup
		statuses := make(chan int, each)
		for range each {
			all.Go(func() { statuses <- send(t, dial, head) })
		}
		all.Wait()
		time.Sleep(time.Second) // virtual
		for range each {
			got[<-statuses]++
		}
	}
	if got[x.status] == 0 || got[x.status]+got[0] != 2*each || (got[0] > 0) != x.charged {
		t.Errorf("heads of %d lines: answered with %v, want %d, and others reset: %t", x.lines, got, x.status, x.charged)
	}
	for range 20 {
		if got := send(t, dial, short); got != http.StatusNoContent {
			t.Fatalf("a short head of an address that is charged is answered with %d", got)
		}
	}
}

// Serve charges long heads to the address that sends them.
func TestServeChargesLongHeads(t *testing.T) {
	for row := range longHeads {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, "HTTP1", mustHandler(t, bare, ingress.Config{Shed: patient}, HandlerConfig{}), true)
			defer s.close()
			charged(t, row, func() (net.Conn, error) { return s.network.dial(t.Context(), "", "") })
		})
	}
}

// ServeTLS does, too.
func TestServeTLSChargesLongHeads(t *testing.T) {
	model := httptest.NewUnstartedServer(nil)
	model.StartTLS() // for its certificate
	defer model.Close()
	config := model.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = "example.com"
	for row := range longHeads {
		synctest.Test(t, func(t *testing.T) {
			h := mustHandler(t, bare, ingress.Config{Shed: patient}, HandlerConfig{})
			network := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
			server := &http.Server{Handler: h, ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: model.TLS.Certificates, MinVersion: tls.VersionTLS13}}
			go func() { _ = h.ServeTLS(server, network, "", "") }()
			charged(t, row, func() (net.Conn, error) {
				c, err := network.dial(t.Context(), "", "")
				return tls.Client(c, config), err
			})
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second) // tls.Conn.Close waits for so long
		})
	}
}

// What is no head is not charged: neither bodies, nor the requests of a connection that is kept, nor what is rejected early, nor
// what a handler reads that has taken over the connection, nor requests that the Handler does not see.
func TestOnlyHeadsAreCharged(t *testing.T) {
	const megabyte = 1 << 20
	body := strings.Repeat("x", megabyte)
	taken := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		c, b, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		n, _ := io.CopyN(io.Discard, b, 10*megabyte)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Read: %d\r\n\r\n", n)
	}
	for _, protocol := range []string{"HTTP1", "h2c"} {
		synctest.Test(t, func(t *testing.T) {
			h := mustHandler(t, http.HandlerFunc(taken), ingress.Config{Shed: patient}, HandlerConfig{})
			s := openWith(t, protocol, h, true, func(s *http.Server) {
				s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/other" {
						_, _ = io.Copy(io.Discard, r.Body)
						return
					}
					h.ServeHTTP(w, r)
				})
			})
			defer s.close()
			for i := range 4 {
				r := newRequest(t, t.Context(), http.MethodPost, strings.NewReader(strings.Repeat(body, 5)))
				r.URL.Path = [...]string{"/", "/other"}[i%2]
				r.Header.Set("Cookie", body[:6000])
				answer, err := s.base.RoundTrip(r)
				if err != nil {
					t.Fatalf("%s, request %d: %v", protocol, i, err)
				}
				_ = answer.Body.Close()
			}
			if protocol == "HTTP1" {
				upgrade := "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n" + strings.Repeat(body, 10)
				if got := send(t, func() (net.Conn, error) { return s.network.dial(t.Context(), "", "") }, []byte(upgrade)); got != http.StatusOK {
					t.Errorf("an upgraded connection: %d", got)
				}
			}
		})
	}
}

// Requests that are rejected early on one connection, with their bodies, are not charged.
func TestEarlyRejectionsAreNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, "HTTP1", half(t, bare), true)
		defer s.close()
		c := must(s.network.dial(context.Background(), "", ""))
		defer c.Close()
		answers := bufio.NewReader(c)
		for i := range 300 {
			fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", drainBytes)
			go func() { _, _ = io.WriteString(c, strings.Repeat("x", drainBytes)) }()
			answer, err := http.ReadResponse(answers, nil)
			if err != nil || answer.StatusCode != http.StatusServiceUnavailable {
				t.Fatalf("request %d: %v, %v", i, answer, err)
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			synctest.Wait()
		}
	})
}
