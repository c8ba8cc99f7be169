package httpproxy

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/accounts"
)

// dial opens a raw connection to a proxy.
func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Addr("").String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

func TestSlowClientsAreTimedOut(t *testing.T) {
	quiet(t)
	left := make(chan struct{}, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/endless" {
			defer func() { left <- struct{}{} }()
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
	})
	for _, mode := range []config.Mode{"observe", "enforce"} {
		_, p := front(t, h, func(c *config.Config) {
			c.Mode, c.Listeners[0].HeaderTimeout = mode, 100*time.Millisecond
		})
		c := dial(t, p)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nX-Never")
		if got, err := io.ReadAll(c); err != nil || bytes.Contains(got, []byte("200")) {
			t.Errorf("%s: half a head is answered with %q, %v", mode, got, err)
		}
		_, p = front(t, h, func(c *config.Config) { // the clients' heads may come late
			l := &c.Listeners[0]
			l.BodyTimeout, l.WriteTimeout, l.IdleTimeout = 100*time.Millisecond, 300*time.Millisecond, 100*time.Millisecond
			c.Mode = mode
		})
		c = dial(t, p)
		fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nsome")
		if got, err := io.ReadAll(c); err != nil || !bytes.Contains(got, []byte("HTTP/1.1 408 ")) {
			t.Errorf("%s: half a body is answered with %q, %v", mode, got, err)
		}
		c = dial(t, p)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if got, err := io.ReadAll(c); err != nil || !bytes.Contains(got, []byte("HTTP/1.1 200 ")) {
			t.Errorf("%s: an idle connection ends with %q, %v", mode, got, err)
		}
		c = dial(t, p)
		fmt.Fprint(c, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
		select {
		case <-left:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: a client that reads nothing is served for ever", mode)
		}
	}
}

// TestClientsFailByThemselves: a client that does not send its body, or too much of it, is no
// failure of the upstream, and does not count for the throttle.
func TestClientsFailByThemselves(t *testing.T) {
	quiet(t)
	for _, second := range []bool{false, true} {
		for want, length := range map[int]int{http.StatusRequestTimeout: 10, http.StatusRequestEntityTooLarge: 1 << 20} {
			address, _ := upstreamAt(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
			c := config.ForUpstream("127.0.0.1:0", address)
			l := &c.Listeners[0]
			l.BodyTimeout, l.MaxBodyBytes = 200*time.Millisecond, 64<<10
			var mu sync.Mutex
			told := make(map[string]spillway.Outcome)
			p, err := Start(t.Context(), c, Config{Observer: spillway.ObserverFunc(func(e spillway.Event) {
				mu.Lock()
				defer mu.Unlock()
				told[e.Policy] = e.Outcome
			})})
			if err != nil {
				t.Fatal(err)
			}
			body, sent := io.Pipe()
			go func() { _, _ = sent.Write(make([]byte, length)) }() // and no end
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.Addr("").String(), body)
			req.RequestURI = ""
			if resp, err := client(t, second).Do(req); err != nil {
				t.Error(err)
			} else {
				if resp.StatusCode != want {
					t.Errorf("HTTP/2 %v: %d, want %d", second, resp.StatusCode, want)
				}
				_ = resp.Body.Close()
			}
			_ = body.Close()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			for policy, outcome := range map[string]spillway.Outcome{
				"throttle": spillway.OutcomeAbandoned, "shed": spillway.OutcomeAbandoned, "retry": spillway.OutcomeNotStarted,
			} {
				if told[policy] != outcome {
					t.Errorf("HTTP/2 %v, %d: %s was told %v, want %v", second, want, policy, told[policy], outcome)
				}
			}
		}
	}
}

// TestDeadlinesOfLateBodies: if the deadline of a route passes while the body is still coming, its client was late, and not the
// upstream. Otherwise clients that send nothing would make the throttle reject others.
func TestDeadlinesOfLateBodies(t *testing.T) {
	quiet(t)
	for name, row := range map[string]struct{ head, rest string }{
		"no end":           {"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n", ""},
		"not asked for":    {"Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n", "abc"},
		"kept for retries": {"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n", "abc"},
	} {
		address, _ := upstreamAt(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
		c := config.ForUpstream("127.0.0.1:0", address)
		c.Mode, c.Routes = "enforce", []config.Route{{Timeout: 200 * time.Millisecond}}
		told, book := make(chan spillway.Outcome, 10), new(accounts.Book)
		p, err := Start(t.Context(), c, Config{Accounts: book, Observer: spillway.ObserverFunc(func(e spillway.Event) {
			if e.Policy == "throttle" {
				told <- e.Outcome
			}
		})})
		if err != nil {
			t.Fatal(err)
		}
		client := dial(t, p)
		fmt.Fprint(client, "POST / HTTP/1.1\r\nHost: a\r\n"+row.head)
		<-time.After(300 * time.Millisecond) // a client that is slow
		fmt.Fprint(client, row.rest)
		if answer, err := io.ReadAll(client); err != nil || !bytes.Contains(answer, []byte("HTTP/1.1 408 ")) {
			t.Errorf("%s: %q, %v, want that the body was late", name, answer, err)
		}
		if o := <-told; o != spillway.OutcomeAbandoned {
			t.Errorf("%s: the throttle was told %v", name, o)
		}
		if n := p.Stats(time.Now()).Clusters[c.Clusters[0].Name].Endpoints[0].Errors; n != 0 {
			t.Errorf("%s: %d errors of the endpoint", name, n)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if n := book.Read(); n.Of(accounts.GoneSent) != 1 {
			t.Errorf("%s: %+v", name, n.Ended)
		}
	}
}

// TestBadBodiesKeepConnections: a body that is too long, or does not come, ends the stream of HTTP/2 that it is on, and not
// the connection, on which others may send.
func TestBadBodiesKeepConnections(t *testing.T) {
	quiet(t)
	address, _ := upstreamAt(t, swallow)
	c := config.ForUpstream("127.0.0.1:0", address)
	c.Listeners[0].BodyTimeout, c.Listeners[0].MaxBodyBytes = 100*time.Millisecond, 1000
	p := start(t, c)
	x, url := client(t, true), "http://"+p.Addr("").String()
	ports := make(map[string]bool)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { ports[c.Conn.LocalAddr().String()] = true }})
	for _, row := range []struct{ length, want int }{
		{10, http.StatusRequestTimeout}, {2000, http.StatusRequestEntityTooLarge}, {20, http.StatusRequestTimeout},
	} {
		body, sent := io.Pipe()
		go func() { _, _ = sent.Write(make([]byte, row.length)) }() // and no end
		req := httptest.NewRequestWithContext(ctx, http.MethodPost, url, body)
		req.RequestURI = ""
		resp, err := x.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != row.want {
			t.Errorf("%d bytes: %s", row.length, resp.Status)
		}
		_ = resp.Body.Close()
		_ = body.Close()
	}
	if len(ports) != 1 {
		t.Errorf("%d connections for requests one after the other", len(ports))
	}
}

// TestAnswersBeforeTheEndOfTheBody: a client that is still sending gets the whole answer if
// the answer comes early.
func TestAnswersBeforeTheEndOfTheBody(t *testing.T) {
	quiet(t)
	answer := bytes.Repeat([]byte("answer"), 50_000)
	url, _ := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = w.Write(answer)
	}), nil)
	x := client(t, true)
	for i := range 20 {
		body, sent := io.Pipe()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
		req.RequestURI = ""
		// With HTTP/1.1, an upstream that stops reading resets the connection.
		req.Header.Set("Content-Type", "application/grpc")
		go func() { // as long as somebody reads it
			for {
				if _, err := sent.Write(make([]byte, 1000)); err != nil {
					return
				}
			}
		}()
		resp, err := x.Do(req)
		if err != nil {
			t.Fatal(i, err)
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		_ = body.Close()
		if resp.StatusCode != http.StatusOK || len(got) != len(answer) || err != nil {
			t.Errorf("%d: %d, %d of %d bytes, %v", i, resp.StatusCode, len(got), len(answer), err)
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	quiet(t)
	_, p := front(t, http.NotFoundHandler(), func(c *config.Config) { c.Listeners[0].MaxConnections = 3 })
	for i := range 6 {
		c := dial(t, p)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
			t.Errorf("%d: %v: no idle connection was evicted for it", i, err)
		}
		if s := p.Stats(time.Now()); s.Listeners["127.0.0.1:0"].Open > 3 {
			t.Errorf("%d connections are open at once, want 3", s.Listeners["127.0.0.1:0"].Open)
		}
	}
}

// TestConnectionsAtWorkAreShared: two addresses have a request at work on each connection that
// they can open. Other addresses get connections nevertheless, and keep them.
func TestConnectionsAtWorkAreShared(t *testing.T) {
	quiet(t)
	release := make(chan struct{})
	_, p := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	}), func(c *config.Config) { c.Listeners[0].MaxConnections = 20 })
	t.Cleanup(func() { close(release) })
	hold := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.DialContext(t.Context(), "tcp", p.Addr("").String())
		if err != nil {
			return nil // it was reset
		}
		t.Cleanup(func() { _ = c.Close() })
		fmt.Fprint(c, "GET /held HTTP/1.1\r\nHost: a\r\n\r\n") // it may be reset
		return c
	}
	atWork := func(n int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) { // net/http does not say when
			if s := p.Stats(time.Now()).Clients["127.0.0.1:0"]; s.Requests == n && s.Waiting == 0 {
				return
			} else if time.Now().After(end) {
				t.Fatalf("%+v, want %d requests at work", s, n)
			}
		}
	}
	for range 20 {
		hold("127.0.0.2")
	}
	atWork(15) // one address gets no more
	for range 10 {
		hold("127.0.0.3")
	}
	atWork(20)
	var others []net.Conn
	for i := range 4 {
		c := hold(fmt.Sprint("127.0.1.", i+1))
		if c == nil {
			t.Fatalf("address %d of 4 gets no connection", i+1)
		}
		others = append(others, c)
		atWork(20)
	}
	c := dial(t, p)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a new client gets %v, %v", resp, err)
	}
	for i, c := range others {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d of another address ends with %v", i, err)
		}
	}
}

// FuzzBytes sends arbitrary bytes to a proxy. Other clients must still be served.
func FuzzBytes(f *testing.F) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for _, s := range []string{
		"", "\x00\x01\x02", "GET\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/9.9\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-Flood: y\r\n", 10000) + "\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX-Long: " + strings.Repeat("y", 200000) + "\r\n\r\n",
		"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x05hello",
		preface, preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00", preface + "\xff\xff\xff\x00\x00\x00\x00\x00\x01",
		preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x05\x01\x05\x00\x00\x00\x01\xff\xff\xff\xff\xff",
		preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + strings.Repeat("\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x08", 200),
	} {
		f.Add([]byte(s))
	}
	url, p := front(f, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}), func(c *config.Config) {
		c.Mode = "enforce"
		c.Listeners[0].HeaderTimeout, c.Listeners[0].BodyTimeout, c.Listeners[0].IdleTimeout = time.Second, time.Second, time.Second
	})
	other := client(f, false)
	other.Transport.(*http.Transport).DisableKeepAlives = true
	f.Fuzz(func(t *testing.T, sent []byte) {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Addr("").String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = c.Write(sent)
		_ = c.(*net.TCPConn).CloseWrite()
		_, err = io.Copy(io.Discard, io.LimitReader(c, 1<<20))
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			t.Error("the connection stays open")
		}
		_ = c.Close()
		if resp, body := do(t, other, http.MethodPost, url, "hello"); resp.StatusCode != http.StatusOK || body != "hello" {
			t.Errorf("another client gets %d %q", resp.StatusCode, body)
		}
	})
}

// An authority makes certificates for tests.
type authority struct {
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.make(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// make writes a certificate and its key to files.
func (a *authority) make(t *testing.T, name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string]*pem.Block{a.file(name): {Type: "CERTIFICATE", Bytes: der}, a.file(name + "-key"): {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name+".pem") }

func TestMutualTLS(t *testing.T) {
	quiet(t)
	a := newAuthority(t)
	a.make(t, "proxy", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	for _, name := range []string{"cart", "ads"} {
		a.make(t, name, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	}
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Request-Criticality"), " ", r.ProtoMajor)
	}))
	pair, err := tls.LoadX509KeyPair(a.file("proxy"), a.file("proxy-key"))
	if err != nil {
		t.Fatal(err)
	}
	upstream.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	t.Cleanup(upstream.Close)
	c := config.ForUpstream("127.0.0.1:0", upstream.Listener.Addr().String())
	c.Clusters[0].TLS, c.Clusters[0].Protocol = &config.ClientTLS{CA: a.file("ca")}, "http2"
	c.Listeners[0].Boundary = "internal"
	c.Listeners[0].TLS = &config.ServerTLS{Certificate: a.file("proxy"), Key: a.file("proxy-key"), ClientCA: a.file("ca")}
	c.Listeners[0].Callers, c.Listeners[0].Others = map[string]config.Class{"cn:cart": "CRITICAL_PLUS"}, "SHEDDABLE_PLUS"
	p := start(t, c)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	for name, want := range map[string]string{"cart": "CRITICAL_PLUS 2", "ads": "SHEDDABLE_PLUS 2", "": ""} {
		conf := &tls.Config{RootCAs: roots}
		if name != "" {
			own, err := tls.LoadX509KeyPair(a.file(name), a.file(name+"-key"))
			if err != nil {
				t.Fatal(err)
			}
			conf.Certificates = []tls.Certificate{own}
		}
		tr := &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true}
		x := &http.Client{Transport: tr, Timeout: 10 * time.Second}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.Addr("").String(), nil)
		req.Header.Set("X-Request-Criticality", "CRITICAL_PLUS")
		resp, err := x.Do(req)
		if (err != nil) != (want == "") {
			t.Errorf("%q: %v", name, err)
		}
		if err == nil {
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if string(body) != want || resp.ProtoMajor != 2 {
				t.Errorf("%q: %q by %s, want %q", name, body, resp.Proto, want)
			}
		}
		tr.CloseIdleConnections()
	}
}

// TestKeptBodyIsNotWaitedFor: when the proxy buffers the body, it answers Expect: 100-continue
// itself and does not forward the header to the upstream.
func TestKeptBodyIsNotWaitedFor(t *testing.T) {
	quiet(t)
	address, _ := upstreamAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%q and %d bytes", r.Header.Get("Expect"), len(body))
	}))
	c := config.ForUpstream("127.0.0.1:0", address)
	c.Mode, c.Clusters[0].Retry.MaxBodyBytes = "enforce", 100
	p := start(t, c)
	for length, want := range map[int]string{100: `"" and 100 bytes`, 101: `"100-continue" and 101 bytes`} {
		_, got := do(t, client(t, false), http.MethodPut, "http://"+p.Addr("").String(), strings.Repeat("x", length), "Expect", "100-continue")
		if got != want {
			t.Errorf("%d bytes: %s, want %s", length, got, want)
		}
	}
}
