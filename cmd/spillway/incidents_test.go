//go:build unix

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/mongowire"
)

var incidents = []incident{
	{"endpoint-down", "One endpoint is down", "1 of 2 endpoints of shop is down.", "SpillwaySomeEndpointsDown", began("endpoints_down"), func(t *testing.T) *stage {
		return newStage(t, shopOf("retry: {mode: enforce}", serve(t, fine), rejecting)).up().load(40)
	}},
	{"all-down", "All endpoints are down", "No endpoint of shop is up: connection refused.", "SpillwayEndpointsDown", began("upstream_unreachable"), func(t *testing.T) *stage {
		return newStage(t, shopOf("", rejecting, "127.0.0.1:2")).up().load(40)
	}},
	{"slow", "The upstream is slow", "Answers come too late.", "SpillwayAnswersLate", began("answers_late"), func(t *testing.T) *stage {
		return newStage(t, shopOf("", serve(t, after(5*time.Second)))+"routes: [{cluster: shop, timeout: 200ms}]\n").up().load(40)
	}},
	{"cpu-starved", "The host has no processor to spare", starved, "SpillwayProcessStarved", began("process_starved"), func(t *testing.T) *stage {
		s := newStage(t, shopOf("", serve(t, fine))).up().load(40)
		s.starve()
		return s
	}},
	{"customer-floods", "One customer floods", "Quotas reject requests.", "SpillwayRejects", began("limit_rejects"), func(t *testing.T) *stage {
		s := newStage(t, shopOf("quota: {default_limit: {rate: 20}}", serve(t, fine))+"routes: [{cluster: shop, customer: {header: X-Customer, trusted_header: true}}]\n").up()
		return s.load(60, customer("acme")).load(5, customer("globex"))
	}},
	{"retry-storm", "Clients retry", "Clients retry what is rejected.", "SpillwayRetriesAreSpent", began("clients_retry"), func(t *testing.T) *stage {
		s := newStage(t, "listeners: [{name: mesh, address: '127.0.0.1:0', boundary: internal, peers: ['127.0.0.0/8']}]\n"+shopOf("", serve(t, overloadedOf(3)))).up()
		return s.every(30, func(n int) {
			for attempt := range 4 {
				if s.send(n, context.Background(), attempts(attempt+1)) != http.StatusServiceUnavailable {
					return
				}
			}
		})
	}},
	{"certificate-expired", "The upstream's certificate has expired", "No endpoint of shop is up: its certificate has expired.", "SpillwayUpstreamFails", began("upstream_unreachable"), func(t *testing.T) *stage {
		server, ca, _ := expired(t)
		return newStage(t, shopOf("tls: {ca: '"+ca+"', server_name: shop.test}", server)).up().load(40)
	}},
	{"own-certificate-expired", "The proxy's certificate has expired", "The certificate of listener public has expired.", "SpillwayCertificateExpired", began("certificate_expired"), func(t *testing.T) *stage {
		_, cert, key := expired(t)
		s := newStage(t, "listeners: [{name: public, address: '127.0.0.1:0', tls: {certificate: '"+cert+"', key: '"+key+"'}}]\n"+shopOf("", serve(t, fine))).up()
		s.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // as careless clients do
		return s.load(20, func(_ int, r *http.Request) { r.URL.Scheme = "https" })
	}},
	{"reload-broken", "A reload finds a broken file", "The last reload failed; the previous configuration is in use.", "SpillwayReloadFailed", "reload failed; keeping the previous configuration", func(t *testing.T) *stage {
		s := newStage(t, shopOf("", serve(t, fine))).up().load(40)
		s.write(shopOf("rate_limit: {rate: fast}", rejecting))
		return s
	}},
	{"clients-give-up", "Clients give up", "Clients give up before they are answered.", "SpillwayClientsGone", began("clients_gone"), func(t *testing.T) *stage {
		s := newStage(t, shopOf("", serve(t, oneIn(4, fine, after(5*time.Second))))).up()
		return s.every(40, func(n int) {
			ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
			defer cancel()
			s.send(n, ctx)
		})
	}},
	{"nothing-answered", "The service answers no request in time", "No request to shop is answered, and the limit is unknown.", "SpillwayRejectsCritical", began("limit_unknown"), func(t *testing.T) *stage {
		s := newStage(t, shopOf("", serve(t, after(5*time.Second)))).up()
		return s.every(40, func(n int) {
			ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
			defer cancel()
			s.send(n, ctx)
		})
	}},
	{"overload-observed", "More requests come than the service can answer, and the proxy only observes", "No request to shop is answered, and the limit is unknown.", "SpillwayClientsGone", began("limit_unknown"), func(t *testing.T) *stage {
		s := newStage(t, "mode: observe\n"+shopOf("", serve(t, pool(2, 40*time.Millisecond)))+
			"routes: [{path: /healthz, exempt: true, timeout: 1s}, {path: /cart/1, cluster: shop, criticality: SHEDDABLE}, {cluster: shop}]\n").up()
		rate := 150 // other incidents need the processors, too
		if *pictures != "" {
			rate = 742
		}
		return s.every(rate, func(n int) {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			s.send(n, ctx)
		})
	}},
	{"limit-too-low", "A limit is too low", "The rate limit rejects requests.", "SpillwayRejects", began("limit_rejects"), func(t *testing.T) *stage {
		return newStage(t, shopOf("rate_limit: {rate: 10}", serve(t, fine))).up().load(50)
	}},
	{"upstream-429", "The upstream answers 429", "The upstream says that a quota is used up.", "SpillwayUpstreamRejects", began("upstream_over_quota"), func(t *testing.T) *stage {
		return newStage(t, shopOf("", serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))).up().load(40)
	}},
	{"batch-queue-full", "The queue of a batch cluster is full", "The full batch queue rejects requests.", "SpillwayRejects", began("limit_rejects"), func(t *testing.T) *stage {
		return newStage(t, shopOf("batch: {connections: 2, queue: 3}", serve(t, after(200*time.Millisecond)))).up().load(40)
	}},
	{"mongodb-failover", "MongoDB fails over", "No MongoDB server behind db can be used.", "SpillwayMongoDBUnreachable", began("mongodb_unreachable"), func(t *testing.T) *stage {
		s := newStage(t, "listeners: []\nmongo: [{name: db, address: '127.0.0.1:0', endpoints: ['"+hangsUp(t)+"', '"+rejecting+"']}]\n").up()
		return s.every(20, func(int) { s.ping(s.address) })
	}},
	{"log-full", "The disk of the log is full", "The log cannot be written.", "SpillwayLogNotWritten", "", func(t *testing.T) *stage {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip("no file that is always full: ", err)
		}
		t.Cleanup(func() { _ = full.Close() })
		shop := shopOf("", serve(t, fine))
		s := newStage(t, shop)
		s.stderr = full
		// Each reload is a line of the log.
		return s.up().load(40).every(1, func(n int) { s.write(shop + "# " + strconv.Itoa(n) + "\n") })
	}},
	{"clock-step", "The clock is set back", "The clock of this host was set back by 1h0m0s.", "SpillwayClockStep", began("clock_step"), func(t *testing.T) *stage {
		s := newStage(t, shopOf("", serve(t, fine)))
		var back atomic.Int64
		s.within = func(now time.Time) time.Time { return now.Round(0).Add(-time.Duration(back.Load())) }
		s.up().load(40)
		s.await("requests", func(st *shown) bool { return st.Verdict.Headline == "All is well." })
		back.Store(int64(time.Hour))
		return s
	}},
}

// began is what the log has of an incident that began.
func began(kind string) string { return `level=WARN msg="incident began" kind=` + kind + " " }

// shopOf returns a configuration of one cluster.
func shopOf(more string, endpoints ...string) string {
	text := "clusters:\n  - name: shop\n    endpoints: ["
	for _, e := range endpoints {
		text += "'" + e + "', "
	}
	return text + "]\n    " + more + "\n"
}

// serve returns the address of a server.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// rejecting is an address that refuses connections.
const rejecting = "127.0.0.1:1"

func fine(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

// hangsUp returns the address of a server that closes each connection once something came, as one
// does that is no longer the primary.
func hangsUp(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Read(make([]byte, 1))
			}()
		}
	}()
	return l.Addr().String()
}

// ping sends a command of MongoDB on a new connection to an address.
func (s *stage) ping(address string) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	s.sent.Add(1)
	var b mongowire.Builder
	b.Int("ping", 1)
	b.Text("$db", "test")
	if _, err := c.Write(mongowire.AppendMsg(nil, 1, 0, 0, b.Document())); err == nil {
		if n, _ := c.Read(make([]byte, 1)); n > 0 {
			s.answered.Add(1)
		}
	}
}

// oneIn has each nth request served by one handler, and the others by another.
func oneIn(n int64, one, others http.HandlerFunc) http.HandlerFunc {
	var count atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1)%n == 0 {
			one(w, r)
			return
		}
		others(w, r)
	}
}

// after answers after so long.
func after(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			fine(w, r)
		case <-r.Context().Done():
		}
	}
}

// pool answers after so long in one of some slots. It does not notice who has left, as most services do not, and has room
// for requests of some seconds.
func pool(slots int, d time.Duration) http.HandlerFunc {
	free, room := make(chan struct{}, slots), make(chan struct{}, 100*slots)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		case <-r.Context().Done():
			return
		}
		free <- struct{}{}
		<-time.After(d)
		<-free
		fine(w, r)
	}
}

// overloadedOf serves one request of n, and is too busy for the others.
func overloadedOf(n uint64) http.HandlerFunc {
	var count atomic.Uint64
	return func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1)%n != 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fine(w, r)
	}
}

func customer(name string) func(int, *http.Request) {
	return func(_ int, r *http.Request) { r.Header.Set("X-Customer", name) }
}

func attempts(n int) func(int, *http.Request) {
	return func(_ int, r *http.Request) { r.Header.Set("X-Envoy-Attempt-Count", strconv.Itoa(n)) }
}

// starve lets the proxy run for a quarter of the time, until the load ends.
func (s *stage) starve() {
	s.all.Go(func() {
		defer func() { _ = s.process.Signal(syscall.SIGCONT) }()
		ticks := time.NewTicker(100 * time.Millisecond)
		defer ticks.Stop()
		for n := 0; ; n++ {
			what := syscall.SIGSTOP
			if n%4 == 0 {
				what = syscall.SIGCONT
			}
			_ = s.process.Signal(what) // it may have ended
			select {
			case <-s.stop:
				return
			case <-ticks.C:
			}
		}
	})
}

// expired returns the address of a server with a certificate that has expired, and its files.
func expired(t *testing.T) (server, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"shop.test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, data []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	cert, key = write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewUnstartedServer(http.HandlerFunc(fine))
	h.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	h.Config.ErrorLog = log.New(io.Discard, "", 0) // each client that finds the certificate expired
	h.StartTLS()
	t.Cleanup(h.Close)
	return h.Listener.Addr().String(), cert, key
}
