package xds

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// eventually waits until ok returns true, with a generous timeout.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// quiet waits at the end of the test until its goroutines have ended.
func quiet(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	})
}

// A lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// A front is a proxy whose only cluster gets its limits from a control plane.
type front struct {
	*gateway.Proxy

	config *config.Config
	url    string
	log    lines
}

// frontOf starts one before h.
func frontOf(t *testing.T, x *config.XDS, h http.HandlerFunc) *front {
	t.Helper()
	upstream := httptest.NewServer(h)
	t.Cleanup(upstream.Close)
	f := &front{config: config.ForUpstream("127.0.0.1:0", upstream.Listener.Addr().String())}
	f.config.Mode, f.config.XDS = "enforce", x
	f.config.Clusters[0].XDS = &config.ClusterXDS{Cluster: "remote"}
	f.config.Clusters[0].Throttle.Mode, f.config.Clusters[0].Shed.Mode = "off", "off" // only what is set from outside rejects
	var err error
	f.Proxy, err = gateway.Start(context.Background(), f.config, gateway.Config{
		Connect: new(Connector).Connect, Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	f.url = "http://" + f.Addr("").String()
	return f
}

// limit returns the in-flight limit.
func (f *front) limit() int {
	return f.Stats(time.Now()).Clusters["upstream"].Egress.InFlight.MaxInFlight
}

func (f *front) limited(t *testing.T, want int) {
	t.Helper()
	eventually(t, "the limit is in force", func() bool { return f.limit() == want })
}

// get sends a request and returns the status.
func (f *front) get(t *testing.T, c *http.Client) int {
	t.Helper()
	r, err := c.Get(f.url)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Error(err)
	}
	return r.StatusCode
}

func client(t *testing.T) *http.Client {
	t.Helper()
	tr := new(http.Transport)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

func node(s *server) *config.XDS {
	return &config.XDS{Address: s.address, Node: config.Node{ID: "proxy-1", Cluster: "edge"}}
}

func TestLimitsFollowAndDropsAreReported(t *testing.T) {
	quiet(t)
	s := newServer(t, most(1))
	arrived, leave := make(chan struct{}, 2), make(chan struct{})
	f := frontOf(t, node(s), func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-leave
	})
	f.limited(t, 1)
	c := client(t)
	var under sync.WaitGroup
	under.Go(func() {
		if status := f.get(t, c); status != http.StatusOK {
			t.Errorf("the first one: %d", status)
		}
	})
	<-arrived
	if status := f.get(t, c); status != http.StatusServiceUnavailable {
		t.Errorf("the second one at once: %d", status)
	}
	s.push(most(2))
	f.limited(t, 2)
	under.Go(func() {
		if status := f.get(t, c); status != http.StatusOK {
			t.Errorf("the second one, with room for it: %d", status)
		}
	})
	<-arrived
	close(leave)
	under.Wait()
	eventually(t, "all is reported", func() bool {
		dropped, succeeded := s.reported()
		return dropped == 1 && succeeded == 2
	})
	if got := s.streams(); !slices.Equal(got, []string{"proxy-1 of edge"}) {
		t.Errorf("connected: %q", got)
	}
	if !f.log.has("limits changed") || !f.log.has("max_requests=2") {
		t.Error("the log does not tell of the limits")
	}
}

// TestDropsAreReportedAtTheEnd: rejections just before the end are reported.
func TestDropsAreReportedAtTheEnd(t *testing.T) {
	quiet(t)
	s := newServer(t, most(0))
	f := frontOf(t, node(s), func(http.ResponseWriter, *http.Request) {})
	f.limited(t, 0)
	eventually(t, "reports are wanted", func() bool { return f.log.has("asks for load reports") })
	for range 3 {
		if status := f.get(t, client(t)); status != http.StatusServiceUnavailable {
			t.Errorf("status %d", status)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "the last report has come", func() bool {
		dropped, _ := s.reported()
		return dropped == 3
	})
}

// TestNoWarningAtTheEnd: a stream that ends because no cluster needs limits any more does not
// log a warning.
func TestNoWarningAtTheEnd(t *testing.T) {
	quiet(t)
	s := newServer(t, most(7))
	var log lines
	c, err := new(Connector).Connect(node(s), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	limits, err := c.Limits(config.ClusterXDS{Cluster: "remote"})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "limits come", func() bool { return log.has("limits changed") })
	limits.Close()
	eventually(t, "the stream ends", func() bool { return s.ended.Load() == 1 })
	if log.has("level=WARN") {
		t.Error(log.text.String())
	}
}

func TestRetriesFollow(t *testing.T) {
	quiet(t)
	none := most(100)
	none.MaxRetries = wrapperspb.UInt32(0)
	s := newServer(t, none)
	var attempts atomic.Int64
	f := frontOf(t, node(s), func(w http.ResponseWriter, _ *http.Request) {
		attempts.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	f.limited(t, 100)
	c := client(t)
	for range 40 { // which pay for retries
		f.get(t, c)
	}
	if got := attempts.Load(); got != 40 {
		t.Errorf("%d attempts of 40 requests, with no retries allowed", got)
	}
	some := most(101)
	some.MaxRetries = wrapperspb.UInt32(5)
	s.push(some)
	f.limited(t, 101)
	eventually(t, "a request is sent again", func() bool {
		before := attempts.Load()
		f.get(t, c)
		return attempts.Load() > before+1
	})
}

// TestLimitsOutliveAll: limits are kept across changes of the configuration and of the proxy's
// name, and when the control plane goes away.
func TestLimitsOutliveAll(t *testing.T) {
	quiet(t)
	s := newServer(t, most(7))
	f := frontOf(t, node(s), func(http.ResponseWriter, *http.Request) {})
	f.limited(t, 7)
	change := func(what string, change func(*config.Config)) {
		t.Helper()
		c := *f.config
		c.Clusters = slices.Clone(c.Clusters)
		change(&c)
		if err := f.Update(&c); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		f.config = &c
		if got := f.limit(); got != 7 {
			t.Errorf("%s: limit %d at once", what, got)
		}
	}
	change("another throttle", func(c *config.Config) { c.Clusters[0].Throttle.K = 3 })
	if got := s.streams(); len(got) != 1 {
		t.Errorf("connected again for nothing: %q", got)
	}
	change("another name", func(c *config.Config) { c.XDS = &config.XDS{Address: s.address, Node: config.Node{ID: "proxy-2"}} })
	eventually(t, "it connects by its new name", func() bool { return slices.Contains(s.streams(), "proxy-2 of ") })
	s.kill()
	eventually(t, "the outage is noticed", func() bool { return f.log.has("disconnected, limits stay") })
	change("in an outage", func(c *config.Config) { c.Clusters[0].Throttle.K = 4 })
	if status := f.get(t, client(t)); status != http.StatusOK {
		t.Errorf("in an outage: %d", status)
	}
}

// TestWrongChangeChangesNothing: a failed change keeps the connection and the limit.
func TestWrongChangeChangesNothing(t *testing.T) {
	quiet(t)
	s := newServer(t, most(7))
	f := frontOf(t, node(s), func(http.ResponseWriter, *http.Request) {})
	f.limited(t, 7)
	for name, row := range map[string]struct {
		xds  *config.XDS
		want string
	}{
		"a long name": {&config.XDS{Address: s.address, Node: config.Node{ID: "proxy-3"}}, "5000 bytes"},
		"no file":     {&config.XDS{Address: s.address, Node: config.Node{ID: "proxy-4"}, TLS: &config.ClientTLS{Certificate: "none.pem"}}, "key is missing"},
	} {
		c := *f.config
		c.XDS, c.Clusters = row.xds, slices.Clone(c.Clusters)
		c.Clusters[0].XDS = &config.ClusterXDS{Cluster: strings.Repeat("x", 5000)}
		if err := f.Update(&c); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", name, err, row.want)
		}
		if got := f.limit(); got != 7 {
			t.Errorf("%s: limit %d", name, got)
		}
	}
	s.push(most(8))
	f.limited(t, 8) // by the connection that there was
}

// handshakes counts failed handshakes.
type handshakes struct {
	credentials.TransportCredentials

	failed atomic.Int64
}

func (h *handshakes) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := h.TransportCredentials.ServerHandshake(c)
	if err != nil {
		h.failed.Add(1)
	}
	return secured, info, err
}

func TestTLS(t *testing.T) {
	quiet(t)
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	creds := &handshakes{TransportCredentials: credentials.NewServerTLSFromCert(&certified.TLS.Certificates[0])}
	s := newServer(t, most(9), grpc.Creds(creds))
	for name, trusted := range map[string]bool{"": true, "example.com": true, "other.test": false} {
		x := node(s)
		x.TLS = &config.ClientTLS{CA: ca, ServerName: name}
		f := frontOf(t, x, func(http.ResponseWriter, *http.Request) {})
		if trusted {
			f.limited(t, 9)
			continue
		}
		eventually(t, "the client turns away", func() bool { return creds.failed.Load() > 0 })
		if got := f.limit(); got != 1024 {
			t.Errorf("limit %d of somebody else", got)
		}
	}
}
