package httpproxy

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// A costly is a proxy with a TLS listener and a quota by the header X-Customer.
type costly struct {
	t     *testing.T
	p     *Proxy
	url   string
	trust *x509.CertPool
}

// startCostly starts a costly with a quota of limit requests per hour for each customer.
func startCostly(t *testing.T, limit float64, change func(*config.Listener)) *costly {
	t.Helper()
	quiet(t)
	a := newAuthority(t)
	a.make(t, "proxy", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	_, p := front(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(c *config.Config) {
		c.Mode = "enforce"
		noShed(c)
		l := &c.Listeners[0]
		l.TLS = &config.ServerTLS{Certificate: a.file("proxy"), Key: a.file("proxy-key")}
		l.Boundary, l.Peers, l.Others = "internal", []string{"127.0.0.0/8"}, "CRITICAL_PLUS"
		change(l)
		c.Clusters[0].Quota = &config.Quota{BurstSeconds: 3600, DefaultLimit: config.Limit{Rate: limit / 3600}}
		c.Routes = []config.Route{{Criticality: "CRITICAL_PLUS", Customer: config.Customer{Header: "X-Customer"}}}
	})
	x := &costly{t: t, p: p, url: "https://" + p.Addr("").String(), trust: x509.NewCertPool()}
	x.trust.AddCert(a.cert)
	return x
}

// client returns a client that shares no connections.
func (x *costly) client(second bool) *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x.trust}, Protocols: new(http.Protocols)}
	tr.Protocols.SetHTTP1(!second)
	tr.Protocols.SetHTTP2(second)
	x.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

// asks makes requests until one is rejected, at most so many, and returns how many were served.
func (x *costly) asks(customer string, most int, client func() *http.Client) (served int) {
	x.t.Helper()
	for range most {
		switch resp, _ := do(x.t, client(), http.MethodGet, x.url, "", "X-Customer", customer); resp.StatusCode {
		case http.StatusOK:
			served++
		case http.StatusTooManyRequests:
			return served
		default:
			x.t.Fatalf("status %d", resp.StatusCode)
		}
	}
	return served
}

// debt returns what a customer has used up, in requests.
func (x *costly) debt(customer string) float64 {
	for _, s := range x.p.Stats(time.Now()).Gates[0].Quota {
		if s.Customer == customer {
			return s.Debt * s.Rate * 3600
		}
	}
	return 0
}

// requests returns the number of in-flight requests.
func (x *costly) requests() (n int) {
	for _, s := range x.p.Stats(time.Now()).Clients {
		n += s.Requests
	}
	return n
}

// TestHandshakesAreCharged: if a handshake costs four requests, a customer with a connection
// for each request is served a fifth of the requests of a customer that keeps its connection.
// A customer over its quota pays for its handshakes, too.
func TestHandshakesAreCharged(t *testing.T) {
	for _, second := range []bool{false, true} {
		x := startCostly(t, 100.5, func(l *config.Listener) { l.HandshakeCost = 4 })
		kept := x.client(second)
		if n := x.asks("keeps", 1000, func() *http.Client { return kept }); n != 97 {
			t.Errorf("HTTP/2 %v: %d requests served on one connection, want 97: 4 of 100.5 are spent", second, n)
		}
		if n := x.asks("reconnects", 1000, func() *http.Client { return x.client(second) }); n != 20 {
			t.Errorf("HTTP/2 %v: %d requests served on a connection each, want 20 that cost 5 each", second, n)
		}
		before := x.debt("reconnects")
		x.asks("reconnects", 1, func() *http.Client { return x.client(second) })
		if paid := x.debt("reconnects") - before; paid < 3.5 || paid > 4 {
			t.Errorf("HTTP/2 %v: a handshake costs a rejected customer %.2f requests, want 4", second, paid)
		}
	}
}

// TestIdleConnectionsAreCharged: time without a request is charged to the customer of the
// request before it, when the next request comes or the connection is closed.
func TestIdleConnectionsAreCharged(t *testing.T) {
	const perSecond = 1e6
	x := startCostly(t, 1e7, func(l *config.Listener) { l.IdleCost = perSecond })
	c := x.client(false)
	ask := func(customer string) {
		if n := x.asks(customer, 1, func() *http.Client { return c }); n != 1 {
			t.Fatalf("customer %s is rejected", customer)
		}
	}
	idle := func() (paid float64) {
		for end := time.Now().Add(time.Minute); x.requests() > 0; {
			if time.Now().After(end) {
				t.Fatal("a request does not end")
			}
		}
		begin := time.Now()
		for time.Since(begin) < time.Millisecond {
			runtime.Gosched() // which is the idle time
		}
		return 0.5e-3 * perSecond // the quota grows by a 360th of that, also before and after
	}
	ask("first")
	before := x.debt("first")
	least := idle()
	ask("second")
	if paid := x.debt("first") - before; paid < least {
		t.Errorf("the first customer was charged %.0f for its idle connection, want %.0f at least", paid, least)
	}
	if n := x.debt("second"); n > 1 {
		t.Errorf("the second customer was charged %.0f for what the first has left idle", n)
	}
	least = idle()
	for end := time.Now().Add(time.Minute); x.debt("second") < least; {
		c.CloseIdleConnections() // the connection may become idle at any time
		if time.Now().After(end) {
			t.Fatalf("the second customer was charged %.0f when the connection was closed, want %.0f at least", x.debt("second"), least)
		}
	}
}
