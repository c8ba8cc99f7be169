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

// BenchmarkRefusal shows the processor time that a server spends on a request that
// it refuses, over connections that are kept: user and kernel, of the whole
// process, in cpu-ns/op. The clients are another process.
func BenchmarkRefusal(b *testing.B) {
	bareRefusal := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Length"] = valueZero
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	for _, bench := range []struct {
		name  string
		serve func(*testing.B, *http.Server, net.Listener)
	}{
		{"bare", func(_ *testing.B, s *http.Server, l net.Listener) {
			s.Handler = bareRefusal
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
		b.Run(bench.name, func(b *testing.B) {
			server := &http.Server{ErrorLog: quiet}
			l := must(net.Listen("tcp", "127.0.0.1:0"))
			var served sync.WaitGroup
			served.Go(func() { bench.serve(b, server, l) })
			clients := knock(b, l.Addr().String(), b.N)
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
func knock(b *testing.B, addr string, n int) func() {
	b.Helper()
	c := exec.CommandContext(b.Context(), must(os.Executable()), "-test.run=^TestKnock$")
	c.Env = append(os.Environ(), fmt.Sprint(knocking, "=", addr, " ", n))
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

// TestKnock are the clients of BenchmarkRefusal.
func TestKnock(t *testing.T) {
	var addr string
	var n int
	if _, err := fmt.Sscan(os.Getenv(knocking), &addr, &n); err != nil {
		t.Skip("only if BenchmarkRefusal asks for it")
	}
	const conns = 16
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range conns {
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
