//go:build unix

package spillhttp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRejection shows the processor time that a server spends on a request that
// it rejects, over connections that are kept: user and kernel, of the whole
// process, in cpu-ns/op. The clients are another process.
func BenchmarkRejection(b *testing.B) {
	bareRejection := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Length"] = valueZero
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	for _, bench := range []struct {
		name  string
		serve func(*testing.B, *http.Server, net.Listener)
	}{
		{"bare", func(_ *testing.B, s *http.Server, l net.Listener) {
			s.Handler = bareRejection
			_ = s.Serve(l)
		}},
		{"handler", func(b *testing.B, s *http.Server, l net.Listener) {
			s.Handler = mustHandler(b, bare, swamped, HandlerConfig{})
			_ = s.Serve(l)
		}},
		{"listener", func(b *testing.B, s *http.Server, l net.Listener) {
			h := mustHandler(b, bare, swamped, HandlerConfig{})
			s.Handler = h
			_ = h.Serve(s, l)
		}},
		{"served", func(_ *testing.B, s *http.Server, l net.Listener) {
			s.Handler = bare
			_ = s.Serve(l)
		}},
	} {
		for _, protocol := range [...]string{protocolHTTP1, protocolHTTP2} {
			b.Run(bench.name+"/"+protocol, func(b *testing.B) {
				server := &http.Server{ErrorLog: quiet, Protocols: only(protocol)}
				l := must(net.Listen("tcp", "127.0.0.1:0"))
				var served sync.WaitGroup
				served.Go(func() { bench.serve(b, server, l) })
				clients := knock(b, l.Addr().String(), protocol, b.N)
				before := processorTime(b)
				b.ResetTimer()
				clients()
				b.StopTimer()
				b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
				server.Close()
				served.Wait()
			})
		}
	}
}

// What the clients of BenchmarkRejection speak.
const protocolHTTP1, protocolHTTP2 = "http1", "http2"

// only returns that one protocol, without TLS.
func only(protocol string) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(protocol == protocolHTTP1)
	p.SetUnencryptedHTTP2(protocol == protocolHTTP2)
	return p
}

// processorTime returns how much the process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// knock starts clients that make n requests. They begin when the returned func is
// called, which returns when they have ended.
func knock(b *testing.B, addr, protocol string, n int) func() {
	b.Helper()
	c := exec.CommandContext(b.Context(), must(os.Executable()), "-test.run=^TestKnock$")
	c.Env = append(os.Environ(), fmt.Sprint(knocking, "=", addr, " ", protocol, " ", n))
	begin := must(c.StdinPipe())
	ready := must(c.StdoutPipe())
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
	return func() {
		begin.Close()
		if err := c.Wait(); err != nil {
			b.Error(err)
		}
	}
}

const knocking = "SPILLHTTP_KNOCK"

// TestKnock are the clients of BenchmarkRejection.
func TestKnock(t *testing.T) {
	var addr, protocol string
	var n int
	if _, err := fmt.Sscan(os.Getenv(knocking), &addr, &protocol, &n); err != nil {
		t.Skip("only if BenchmarkRejection asks for it")
	}
	const conns = 16
	var all sync.WaitGroup
	begin := make(chan struct{})
	base := &http.Transport{Protocols: only(protocol), DisableCompression: true}
	defer base.CloseIdleConnections()
	for i := range conns {
		if protocol == protocolHTTP2 {
			all.Go(func() {
				<-begin
				callAgain(t, base, "http://"+addr+"/search?q=go", (n+i)/conns)
			})
			continue
		}
		var d net.Dialer
		c := must(d.DialContext(context.Background(), "tcp", addr))
		all.Go(func() {
			defer c.Close()
			<-begin
			knockAgain(t, c, (n+i)/conns)
		})
	}
	fmt.Fprint(os.Stdout, "!")
	_, _ = io.Copy(io.Discard, os.Stdin)
	close(begin)
	all.Wait()
}

func knockAgain(t *testing.T, c net.Conn, n int) {
	t.Helper()
	text := []byte("GET /search?q=go HTTP/1.1\r\nHost: example.com:8080\r\nUser-Agent: Go-http-client/1.1\r\n" +
		headerCriticality + ": SHEDDABLE\r\nAccept-Encoding: gzip\r\n\r\n")
	r := bufio.NewReader(c)
	for range n {
		if _, err := c.Write(text); err != nil {
			t.Error(err)
			return
		}
		for line := []byte{0}; len(bytes.TrimSpace(line)) > 0; {
			var err error
			if line, err = r.ReadSlice('\n'); err != nil {
				t.Error(err)
				return
			}
		}
	}
}

// callAgain makes n calls over HTTP/2, which share one connection.
func callAgain(t *testing.T, base http.RoundTripper, url string, n int) {
	t.Helper()
	for range n {
		r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody))
		r.Header.Set(headerCriticality, "SHEDDABLE")
		resp, err := base.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}
