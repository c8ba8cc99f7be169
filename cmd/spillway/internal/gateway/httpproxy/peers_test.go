package httpproxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestConnectionsFromBeforeAreTrustedAsTheyWere: who may connect is asked of new connections only. So those that are
// open when the boundary or the peers of a listener change end, and what they still ask for is trusted no more than before.
func TestConnectionsFromBeforeAreTrustedAsTheyWere(t *testing.T) {
	quiet(t)
	forged := make(chan string, 9)
	address, _ := upstreamAt(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		forged <- r.Header.Get("X-Forwarded-User")
	}))
	of := func(boundary string, peers ...string) *config.Config {
		c := config.ForUpstream("127.0.0.1:0", address)
		c.Listeners[0].Boundary, c.Listeners[0].Peers = boundary, peers
		return c
	}
	const request = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-User: admin\r\n\r\n"
	for _, row := range []struct {
		name          string
		before, after *config.Config
		want          string // arrives, of a connection from before
	}{
		{"an edge becomes internal", of("edge"), of("internal", "192.0.2.0/24"), ""},
		{"a network is no peer any more", of("internal", "127.0.0.0/8", "192.0.2.0/24"), of("internal", "192.0.2.0/24"), "admin"},
	} {
		p := start(t, row.before)
		c := dial(t, p)
		in := bufio.NewReader(c)
		ask := func() *http.Response {
			if _, err := io.WriteString(c, request); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%s: %v", row.name, err)
			}
			_ = resp.Body.Close()
			return resp
		}
		ask()
		<-forged
		if err := p.Update(row.after); err != nil {
			t.Fatal(err)
		}
		for ends := false; !ends; { // the drain may begin after a few more
			ends = ask().Close
			if got := <-forged; got != row.want {
				t.Errorf("%s: a header that only a peer may send arrives as %q, want %q", row.name, got, row.want)
				break
			}
		}
	}
}

// TestCertificatesAreAskedForAgain: a connection that was let in without a certificate ends when the listener begins to ask for one.
func TestCertificatesAreAskedForAgain(t *testing.T) {
	quiet(t)
	a := newAuthority(t)
	a.make(t, "proxy", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	address, _ := upstreamAt(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	of := func(ca string, optional bool) *config.Config {
		c := config.ForUpstream("127.0.0.1:0", address)
		c.Listeners[0].TLS = &config.ServerTLS{Certificate: a.file("proxy"), Key: a.file("proxy-key"), ClientCA: ca, Optional: optional}
		return c
	}
	for name, before := range map[string]*config.Config{"client_ca": of("", false), "optional": of(a.file("ca"), true)} {
		p := start(t, before)
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
		ask := func() error {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.Addr("").String(), nil)
			resp, err := tr.RoundTrip(req)
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				err = resp.Body.Close()
			}
			return err
		}
		if err := ask(); err != nil {
			t.Fatalf("%s: without a certificate, where none is needed: %v", name, err)
		}
		if err := p.Update(of(a.file("ca"), false)); err != nil {
			t.Fatal(err)
		}
		requests := 0
		for requests < 100 && ask() == nil { // the drain may begin after a few more
			requests++
		}
		if requests == 100 {
			t.Errorf("%s: a connection without a certificate goes on", name)
		}
		tr.CloseIdleConnections()
	}
}
