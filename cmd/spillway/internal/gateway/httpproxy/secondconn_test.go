package httpproxy

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
	"github.com/seed90641741/spillway/internal/race"
)

// TestSilentCallsCostLittle: if an endpoint allows frames of 1 MiB, as net/http does, a call
// whose client sends nothing must not cost the proxy a buffer of that size.
func TestSilentCallsCostLittle(t *testing.T) {
	quiet(t)
	const calls, most = 60, 100 << 10 // bytes a call; with long frames it is 512 KiB
	for _, secured := range []bool{false, true} {
		var begun sync.WaitGroup
		begun.Add(calls)
		upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Error("the endpoint got a call by", r.Proto)
			}
			if r.URL.Path == "/silent" {
				begun.Done()
			}
			_, _ = io.Copy(io.Discard, r.Body) // it ends with the client
		}))
		upstream.EnableHTTP2 = true
		c := atUpstream(t, upstream, secured)
		p := start(t, c)
		// Without a connection to the endpoint, each call could open its own.
		do(t, client(t, true), http.MethodPost, "http://"+p.Addr("").String(), "", "Content-Type", "application/grpc", "Te", "trailers")
		c2, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Addr("").String())
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, c2) }()
		before := heapInUse()
		text := http2.ClientPreface + gatewaytest.Frame(http2.FrameSettings, 0, 0, "")
		for i := range uint32(calls) {
			text += gatewaytest.RequestFrame(0, 2*i+1, "POST", "/silent", "content-type", "application/grpc", "te", "trailers")
		}
		if _, err := io.WriteString(c2, text); err != nil {
			t.Fatal(err)
		}
		begun.Wait()
		grown := heapInUse() - before
		_ = c2.Close()
		if grown > calls*most {
			t.Errorf("TLS %v: %d silent calls cost %d kB each, want at most %d", secured, calls, grown/calls>>10, most>>10)
		}
	}
}

// heapInUse is in bytes, after two collections: a sync.Pool keeps its buffers through one.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// atUpstream starts an upstream that speaks both protocols, and returns the configuration of
// a proxy in front of it.
func atUpstream(t *testing.T, upstream *httptest.Server, secured bool) *config.Config {
	t.Helper()
	t.Cleanup(upstream.Close)
	if !secured {
		upstream.Config.Protocols = new(http.Protocols)
		upstream.Config.Protocols.SetHTTP1(true)
		upstream.Config.Protocols.SetUnencryptedHTTP2(true)
		upstream.Start()
		return config.ForUpstream("127.0.0.1:0", upstream.Listener.Addr().String())
	}
	a := newAuthority(t)
	a.make(t, "endpoint", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	pair, err := tls.LoadX509KeyPair(a.file("endpoint"), a.file("endpoint-key"))
	if err != nil {
		t.Fatal(err)
	}
	upstream.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	upstream.StartTLS()
	c := config.ForUpstream("127.0.0.1:0", upstream.Listener.Addr().String())
	c.Clusters[0].TLS = &config.ClientTLS{CA: a.file("ca")}
	return c
}

// TestProtocols: with and without TLS, gRPC calls use HTTP/2 and all others HTTP/1.1, unless
// the configuration says otherwise.
func TestProtocols(t *testing.T) {
	quiet(t)
	for _, secured := range []bool{false, true} {
		upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Proto)
		}))
		upstream.EnableHTTP2 = true
		c := atUpstream(t, upstream, secured)
		for protocol, want := range map[string][2]string{
			"auto": {"HTTP/1.1", "HTTP/2.0"}, "http1": {"HTTP/1.1", "HTTP/1.1"}, "http2": {"HTTP/2.0", "HTTP/2.0"},
		} {
			c.Clusters[0].Protocol = protocol
			url, x := "http://"+start(t, c).Addr("").String(), client(t, true)
			_, plain := do(t, x, http.MethodGet, url, "")
			_, call := do(t, x, http.MethodPost, url, "call", "Content-Type", "application/grpc", "Te", "trailers")
			if got := [2]string{plain, call}; got != want {
				t.Errorf("TLS %v, protocol %s: %q, want %q", secured, protocol, got, want)
			}
		}
	}
}

// secondConn connects to a proxy by HTTP/2, and sends text.
func secondConn(t *testing.T, p *Proxy, text string) net.Conn {
	t.Helper()
	c := dial(t, p)
	if _, err := io.WriteString(c, http2.ClientPreface+gatewaytest.Frame(http2.FrameSettings, 0, 0, "")+text); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConnectionsThatLeave: an HTTP/2 connection that ends with open streams leaves nothing in
// memory for its idle timeout.
func TestConnectionsThatLeave(t *testing.T) {
	quiet(t)
	const all, most = 400, 8 << 10 // bytes a connection; what stayed was 28 kB
	conns := 100                   // at once
	if race.Enabled {
		conns = 20 // with the race detector a hundred are an overload, and some are reset
	}
	_, p := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), nil)
	leave := func() {
		var open []net.Conn
		for range conns {
			open = append(open, secondConn(t, p, gatewaytest.RequestFrame(http2.FlagHeadersEndStream, 1, "GET", "/", "x", strings.Repeat("x", 12<<10))))
		}
		for _, c := range open {
			if _, err := io.ReadFull(c, make([]byte, 9)); err != nil { // it is served
				t.Error(err)
			}
			_ = c.Close()
		}
		until(t, "connections that left are gone", func() bool { return p.Stats(time.Now()).Listeners["127.0.0.1:0"].Open == 0 })
	}
	leave() // pools are filled
	before := heapInUse()
	for range all / conns {
		leave()
	}
	until(t, "memory of connections that left is free", func() bool { return heapInUse()-before < all*most })
}

// TestIdleEnds: an idle connection of HTTP/2 gets GOAWAY, and then ends.
func TestIdleEnds(t *testing.T) {
	quiet(t)
	_, p := front(t, http.NotFoundHandler(), func(c *config.Config) { c.Listeners[0].IdleTimeout = 100 * time.Millisecond })
	c := secondConn(t, p, gatewaytest.RequestFrame(http2.FlagHeadersEndStream, 1, "GET", "/"))
	got, err := io.ReadAll(c)
	goAway := gatewaytest.Frame(7, 0, 0, "\x7f\xff\xff\xff\x00\x00\x00\x00")
	if err != nil || !strings.HasSuffix(string(got), goAway) {
		t.Errorf("it ends with %q, %v, want GOAWAY", got, err)
	}
}
