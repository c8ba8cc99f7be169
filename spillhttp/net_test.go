package spillhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// pipes is a network that exists in a bubble: a listener, and the dialing of it.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	opens atomic.Int32
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		p.opens.Add(1)
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// overPipes runs test in a bubble, for HTTP/1.1 and for HTTP/2 without TLS, with a
// base whose every connection leads to handler.
func overPipes(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, base *http.Transport, network *pipes)) {
	t.Helper()
	for _, protocol := range []string{"HTTP1", "h2c"} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
				protocols := new(http.Protocols)
				protocols.SetHTTP1(protocol == "HTTP1")
				protocols.SetUnencryptedHTTP2(protocol == "h2c")
				server := &http.Server{Handler: handler, Protocols: protocols, ErrorLog: quiet}
				go func() { _ = server.Serve(network) }()
				defer server.Close()
				base := &http.Transport{DialContext: network.dial, Protocols: protocols}
				defer base.CloseIdleConnections()
				test(t, base, network)
			})
		})
	}
}

// TestOverload follows a call through two rejections: what the server sees of each
// attempt and when, on how many connections, and what the client gets.
func TestOverload(t *testing.T) {
	type seen struct {
		at                             time.Duration
		criticality, attempt, deadline string
	}
	var (
		start time.Time
		got   []seen
	)
	handler := func(w http.ResponseWriter, r *http.Request) {
		got = append(got, seen{time.Since(start), r.Header.Get(headerCriticality), r.Header.Get(headerAttempt), r.Header.Get(headerDeadline)})
		body, _ := io.ReadAll(r.Body)
		if len(got) < 3 {
			w.Header().Set("Retry-After", "2")
			w.Header().Set("X-Envoy-Overloaded", "true")
			w.WriteHeader(503)
			fmt.Fprint(w, "try again later")
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s", r.Method, body)
	}
	overPipes(t, handler, func(t *testing.T, base *http.Transport, network *pipes) {
		start, got = time.Now(), nil
		rt := mustTransport(t, TransportConfig{Base: base, Egress: eager})
		ctx, cancel := context.WithTimeout(spillway.WithCriticality(t.Context(), spillway.CriticalPlus), 20*time.Second)
		defer cancel()
		resp, err := rt.RoundTrip(newRequest(t, ctx, http.MethodPost, strings.NewReader("payload")))
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, resp); resp.StatusCode != 200 || got != "POST payload" {
			t.Errorf("%d %q", resp.StatusCode, got)
		}
		if len(got) != 3 {
			t.Fatalf("%d attempts, want 3", len(got))
		}
		for i, s := range got {
			least := time.Duration(i) * 2 * time.Second
			left := milliseconds(20*time.Second - s.at)
			if s.at < least || s.at > least+least/2 || s.criticality != "CRITICAL_PLUS" || s.deadline != left || s.attempt != []string{"", "2", "3"}[i] {
				t.Errorf("attempt %d: %+v, want it soon after %v with %s ms left", i+1, s, least, left)
			}
		}
		if n := network.opens.Load(); n != 1 {
			t.Errorf("%d connections, want 1 for all attempts", n)
		}
		if n := inFlight(rt); n != 0 {
			t.Errorf("%d left in flight", n)
		}
	})
}

// TestLastAnswerStreams: a failure that is not retried arrives as it is sent.
func TestLastAnswerStreams(t *testing.T) {
	handler := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
		for i := range 3 {
			fmt.Fprintf(w, "part %d\n", i)
			w.(http.Flusher).Flush()
			time.Sleep(time.Hour)
		}
	}
	overPipes(t, handler, func(t *testing.T, base *http.Transport, _ *pipes) {
		rt := mustTransport(t, TransportConfig{Base: base, Egress: eager})
		start := time.Now()
		resp, err := rt.RoundTrip(newRequest(t, t.Context(), http.MethodPost, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for i := 0; lines.Scan(); i++ {
			if at := time.Since(start); lines.Text() != fmt.Sprintf("part %d", i) || at != time.Duration(i)*time.Hour || inFlight(rt) != 1 {
				t.Errorf("%q after %v, %d in flight", lines.Text(), at, inFlight(rt))
			}
		}
		if n := inFlight(rt); n != 0 || lines.Err() != nil {
			t.Errorf("at the end: %d in flight, %v", n, lines.Err())
		}
	})
}

// TestRequestStreams: the server reads what was written before more is written.
func TestRequestStreams(t *testing.T) {
	heard := make(chan string)
	handler := func(_ http.ResponseWriter, r *http.Request) {
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			heard <- lines.Text()
		}
	}
	overPipes(t, handler, func(t *testing.T, base *http.Transport, _ *pipes) {
		heard = make(chan string)
		rt := mustTransport(t, TransportConfig{Base: base, Egress: eager})
		pr, pw := io.Pipe()
		go func() {
			for _, line := range []string{"one", "two"} {
				fmt.Fprintln(pw, line)
				if got := <-heard; got != line {
					t.Errorf("heard %q, want %q", got, line)
				}
			}
			pw.Close()
		}()
		roundTrip(t, rt, newRequest(t, t.Context(), http.MethodPost, pr))
	})
}

// TestCallerLeaves: while the server thinks, and while it talks.
func TestCallerLeaves(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
	overPipes(t, handler, func(t *testing.T, base *http.Transport, _ *pipes) {
		rt := mustTransport(t, TransportConfig{Base: base, Egress: eager})
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, cancel)
			resp, err := rt.RoundTrip(newRequest(t, ctx, method, nil))
			if method == http.MethodPut && err == nil {
				_, err = io.ReadAll(resp.Body) // releases by its error, before Close
				if n := inFlight(rt); n != 0 {
					t.Errorf("%d in flight after the body failed", n)
				}
				resp.Body.Close()
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want it canceled", method, err)
			}
			if s := rt.Stats(time.Now())["backend.example"]; s.InFlight.InFlight != 0 || s.InFlight.SurplusTotal != 0 {
				t.Errorf("%s: %+v, want nothing in flight", method, s.InFlight)
			}
		}
	})
}

// TestExpectContinue: a body that the server does not ask for is not sent; the attempt that is
// accepted sends it whole.
func TestExpectContinue(t *testing.T) {
	attempts := 0
	handler := func(w http.ResponseWriter, r *http.Request) {
		if attempts++; attempts == 1 {
			w.Header().Set("X-Envoy-Overloaded", "true")
			w.WriteHeader(503) // without reading, and so without 100 Continue
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	}
	overPipes(t, handler, func(t *testing.T, base *http.Transport, _ *pipes) {
		attempts = 0
		base.ExpectContinueTimeout = time.Minute
		rt := mustTransport(t, TransportConfig{Base: base, Egress: eager})
		const size = 1 << 20
		var read []*atomic.Int64
		body := func() (io.ReadCloser, error) {
			n := new(atomic.Int64)
			read = append(read, n)
			return io.NopCloser(io.TeeReader(io.LimitReader(zeros{}, size), counter{n})), nil
		}
		req := newRequest(t, t.Context(), http.MethodPost, must(body()))
		req.GetBody, req.ContentLength = body, size
		req.Header.Set("Expect", "100-continue")
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, resp); got != fmt.Sprint(size) {
			t.Errorf("the server read %s bytes, want %d", got, size)
		}
		if len(read) != 2 || read[0].Load() != 0 || read[1].Load() != size {
			t.Errorf("%d bodies, %d bytes of the first read, want 2 and 0", len(read), read[0].Load())
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }

// TestClient puts an http.Client on top: redirects and its timeout.
func TestClient(t *testing.T) {
	var (
		mu       sync.Mutex
		attempts = map[string]int{}
	)
	count := func(path string, more int) int {
		mu.Lock()
		defer mu.Unlock()
		attempts[path] += more
		return attempts[path]
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		n := count(r.URL.Path, 1)
		switch body, _ := io.ReadAll(r.Body); {
		case r.URL.Path == "/slow":
			<-r.Context().Done()
		case n == 1:
			w.WriteHeader(502)
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "http://other.example/here", http.StatusTemporaryRedirect)
		default:
			fmt.Fprintf(w, "%s %s", r.Method, body)
		}
	}
	overPipes(t, handler, func(t *testing.T, base *http.Transport, _ *pipes) {
		clear(attempts)
		rt := mustTransport(t, TransportConfig{Base: base, Egress: eager})
		client := &http.Client{Transport: rt, Timeout: time.Minute}
		resp, err := client.Do(newRequest(t, t.Context(), http.MethodPut, strings.NewReader("payload")))
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, resp); got != "PUT payload" {
			t.Errorf("%d %q", resp.StatusCode, got)
		}
		moved := newRequest(t, t.Context(), http.MethodPut, strings.NewReader("payload"))
		moved.URL.Path = "/moved"
		if resp, err = client.Do(moved); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, resp); got != "PUT payload" || count("/moved", 0) != 2 || count("/here", 0) != 2 {
			t.Errorf("after a redirect: %q, %d and %d attempts, want 2 of each", got, count("/moved", 0), count("/here", 0))
		}
		start := time.Now()
		slow := newRequest(t, t.Context(), http.MethodGet, nil)
		slow.URL.Path = "/slow"
		_, err = client.Do(slow)
		if e, ok := errors.AsType[*url.Error](err); !ok || !e.Timeout() || time.Since(start) != time.Minute {
			t.Errorf("%v after %v, want the client's timeout", err, time.Since(start))
		}
		if count("/slow", 0) != 1 || inFlight(rt) != 0 {
			t.Errorf("%d attempts, %d left in flight", count("/slow", 0), inFlight(rt))
		}
	})
}

// TestConnectionsReused counts connections to a loopback server where every second answer is a
// failure.
func TestConnectionsReused(t *testing.T) {
	for _, row := range []struct {
		name string
		size int
		most int32
	}{
		{"small", 2000, 1},
		{"large", 4 * drainBytes, 40},
	} {
		t.Run(row.name, func(t *testing.T) {
			var requests, conns atomic.Int32
			failure := strings.Repeat("x", row.size)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if requests.Add(1)%2 == 1 {
					w.WriteHeader(503)
					fmt.Fprint(w, failure)
				}
			}))
			server.Config.ErrorLog = quiet
			server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					conns.Add(1)
				}
			}
			server.Start()
			defer server.Close()
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			rt := mustTransport(t, TransportConfig{Base: base, Egress: eager})
			for range 20 {
				resp, err := rt.RoundTrip(must(http.NewRequestWithContext(t.Context(), "GET", server.URL, nil)))
				if err != nil || resp.StatusCode != 200 {
					t.Fatalf("%v, %v", resp, err)
				}
				readAll(t, resp)
			}
			if requests.Load() != 40 || conns.Load() > row.most {
				t.Errorf("%d attempts on %d connections, want 40 on at most %d", requests.Load(), conns.Load(), row.most)
			}
		})
	}
}

// TestUpgrade switches protocols: both sides may talk, each may end what it says
// before the other, and it counts as in flight until it is closed.
func TestUpgrade(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		fmt.Fprint(conn, "echo "+line)
		rest, _ := io.ReadAll(rw)
		fmt.Fprintf(conn, "heard all, at last %q\n", rest)
	}))
	defer server.Close()
	rt := mustTransport(t, TransportConfig{Base: &http.Transport{}})
	req := must(http.NewRequestWithContext(t.Context(), "GET", server.URL, nil))
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatalf("%d with a body %T that cannot be written to", resp.StatusCode, resp.Body)
	}
	fmt.Fprintln(conn, "hello")
	heard := bufio.NewReader(conn)
	if line, err := heard.ReadString('\n'); line != "echo hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	if n := inFlight(rt); n != 0 {
		t.Errorf("%d in flight while open, want 0: a connection may idle for as long as it likes", n)
	}
	fmt.Fprint(conn, "bye")
	half, ok := conn.(interface{ CloseWrite() error }) // as httputil.ReverseProxy looks for it
	if !ok {
		t.Fatalf("a body %T of which not one half can be closed", conn)
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if line, err := heard.ReadString('\n'); line != "heard all, at last \"bye\"\n" {
		t.Errorf("%q, %v", line, err)
	}
	conn.Close()
	if n := inFlight(rt); n != 0 {
		t.Errorf("%d in flight after Close", n)
	}
}

// TestManyAtOnce lets clients fail, retry, leave and be rejected, against a real
// server that breaks connections too, and looks for what is left.
func TestManyAtOnce(t *testing.T) {
	var n atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) % 5 {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			w.WriteHeader(503)
			fmt.Fprint(w, "busy")
		case 2:
			<-r.Context().Done()
		default:
			fmt.Fprint(w, "done")
		}
	}))
	server.Config.ErrorLog = quiet
	server.Start()
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	rt := mustTransport(t, TransportConfig{Base: base, Egress: egress.Config{MaxInFlight: 6, Retry: eager.Retry}})
	stop := make(chan struct{})
	for range 8 {
		go func() {
			for range 40 {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
				req := must(http.NewRequestWithContext(ctx, "GET", server.URL, nil))
				if resp, err := rt.RoundTrip(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				cancel()
			}
			stop <- struct{}{}
		}()
	}
	for range 8 {
		<-stop
	}
	for host, s := range rt.Stats(time.Now()) {
		if s.InFlight.InFlight != 0 || s.InFlight.SurplusTotal != 0 {
			t.Errorf("%s: %+v, want nothing in flight", host, s.InFlight)
		}
	}
}
