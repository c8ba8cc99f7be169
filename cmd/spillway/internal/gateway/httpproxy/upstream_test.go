package httpproxy

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/admin/resets"
	"github.com/seed90641741/spillway/internal/thorough"
)

func noShed(c *config.Config) { c.Clusters[0].Shed.Mode = "off" }

// attempts returns how many attempts the nodes got.
func attemptsOf(nodes []*node) (n int64) {
	for _, x := range nodes {
		n += x.asked.Load()
	}
	return n
}

// TestOneOfFourIsWeak has one of four endpoints at a quarter of its capacity, with the
// load at 70 % of all, over sockets: it has few places, or is slow. What it takes needs a
// machine that has time; a short run has
// fewer requests and asserts only that they are served.
func TestOneOfFourIsWeak(t *testing.T) {
	needMachine(t)
	const service = 20 * time.Millisecond
	slots := 10
	if !*measure {
		slots = 4
	}
	rate := 0.7 * float64(4*slots) / service.Seconds()
	var calm time.Duration // the longer one of two measurements
	for _, row := range []struct{ weak, hint string }{
		{"none", ""}, {"none", "1"}, {"few places", ""}, {"few places", "1"}, {"slow", "1"},
	} {
		var nodes []*node
		for i := range 4 {
			n := newNode(slots, service)
			n.hint = row.hint
			switch {
			case i > 0:
			case row.weak == "few places":
				n.resize(max(slots/4, 1))
			case row.weak == "slow":
				n.service *= 4
			}
			nodes = append(nodes, n)
		}
		url, _ := before(t, nodes, noShed)
		offer(t, url, rate/2, 2*time.Second) // connections are opened, and something is known
		first := attemptsOf(nodes)
		got := offer(t, url, rate, longer(3*time.Second, 20*time.Second))
		amplification := float64(attemptsOf(nodes)-first) / float64(got.sent.Load())
		t.Logf("weak: %s, Retry-After %q: %v, amplification %.3f, %v", row.weak, row.hint, got, amplification, nodes)
		if row.weak == "none" {
			needTime(t, got, service)
			calm = max(calm, got.quantile(0.99))
		}
		if got.success() < 0.995 || amplification > 1.1 {
			t.Errorf("weak: %s: %v, amplification %.3f", row.weak, got, amplification)
		}
		if p99 := got.quantile(0.99); *measure && p99 > calm+20*time.Millisecond {
			t.Errorf("weak: %s: p99 %v, without overload %v", row.weak, p99, calm)
		}
	}
}

// TestOneEndpointRejects has one of two, four or ten endpoints reject all requests, while the
// others have capacity.
func TestOneEndpointRejects(t *testing.T) {
	t.Parallel() // a small load for seconds
	for i, n := range []int{2, 4, 10} {
		for j, hint := range []string{"1", "", "3600"} {
			if i+j > 0 && !thorough.Enabled() { // each takes seconds of real time
				continue
			}
			var nodes []*node
			for range n {
				x := newNode(50, 5*time.Millisecond)
				x.hint, x.queue = hint, 1<<20 // what comes at once after a pause of the machine waits
				nodes = append(nodes, x)
			}
			nodes[0].rejects.Store(true)
			url, _ := before(t, nodes, noShed)
			got := offer(t, url, 100, longer(6*time.Second, 30*time.Second))
			t.Logf("1 of %d rejects, Retry-After %q: %v, %v", n, hint, got, nodes[0])
			if got.success() < 0.99 {
				t.Errorf("1 of %d rejects, Retry-After %q: %v, %v", n, hint, got, nodes)
			}
		}
	}
}

// TestMaintenance: if all endpoints send Retry-After with two minutes, the client gets this
// header and the page; only the first requests are retried.
func TestMaintenance(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "closed for maintenance")
	})
	first, _ := upstreamAt(t, page)
	second, _ := upstreamAt(t, page)
	url, p := front(t, page, func(c *config.Config) {
		c.Mode = "enforce"
		c.Clusters[0].Endpoints = []string{first, second}
		c.Clusters[0].Throttle.MinRequests = 30
	})
	x := client(t, false)
	pages := 0
	for i := range 300 {
		resp, body := do(t, x, http.MethodGet, url, "")
		if resp.StatusCode != http.StatusServiceUnavailable {
			t.Fatal(resp.Status)
		}
		if body == "closed for maintenance" {
			pages++
			if resp.Header.Get("Retry-After") != "120" || resp.Header.Get("X-Overload-Scope") != "" {
				t.Errorf("the page came with %v", resp.Header)
			}
		} else if after := resp.Header.Get("Retry-After"); len(after) != 3 { // 100 s at least
			t.Fatalf("request %d: rejected with Retry-After %s, %s", i, after, body)
		}
	}
	sent := uint64(0)
	for _, e := range p.Stats(time.Now()).Clusters["upstream"].Endpoints {
		sent += e.Total
	}
	if pages < 30 || sent > uint64(pages)+5 {
		t.Errorf("%d pages, %d attempts", pages, sent)
	}
}

// chatty answers by path: it rejects /bad, and customers over their quota get a 429.
func chatty(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/bad"):
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.Header.Get("X-Customer") == "greedy":
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		fmt.Fprint(w, "done")
	}
}

// TestWhatIsNotShared sends 900 requests a second from one customer that is over its quota, or
// to one path that always fails, and 100 other requests. The other requests are not affected.
func TestWhatIsNotShared(t *testing.T) {
	for _, row := range []struct {
		name, path string
		headers    []string
	}{
		{"429 of one customer", "/work", []string{"X-Customer", "greedy"}},
		{"503 of one path", "/bad/17/export", nil},
	} {
		for _, n := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, %d endpoints", row.name, n), func(t *testing.T) {
				t.Parallel() // a small load for seconds
				var addresses []string
				for range n {
					address, _ := upstreamAt(t, http.HandlerFunc(chatty))
					addresses = append(addresses, address)
				}
				url, p := front(t, http.NotFoundHandler(), func(c *config.Config) {
					c.Mode = "enforce"
					c.Clusters[0].Endpoints = addresses
					noShed(c)
				})
				d := longer(3*time.Second, 20*time.Second)
				var all sync.WaitGroup
				all.Go(func() { offer(t, url+row.path, fewer(900), d, row.headers...) })
				got := offer(t, url+"/work", fewer(100), d)
				all.Wait()
				rejected := uint64(0)
				for _, c := range p.Stats(time.Now()).Clusters["upstream"].Egress.Throttle {
					rejected += c.RejectedTotal
				}
				needTime(t, got, 50*time.Millisecond)
				t.Logf("the others: %v; rejected by the throttle: %d", got, rejected)
				if got.ok.Load() != got.sent.Load() {
					t.Errorf("the others: %v", got)
				}
				if row.headers == nil && rejected == 0 || row.headers != nil && rejected > 0 {
					t.Errorf("%d rejected by the throttle", rejected)
				}
			})
		}
	}
}

// TestEndpointsComeAndGo changes the endpoints under load: no request fails, and the state of
// the remaining endpoints is kept.
func TestEndpointsComeAndGo(t *testing.T) {
	t.Parallel() // a small load for seconds
	var addresses []string
	var nodes []*node
	for range 4 {
		n := newNode(50, 5*time.Millisecond)
		address, _ := upstreamAt(t, n)
		addresses, nodes = append(addresses, address), append(nodes, n)
	}
	nodes[0].rejects.Store(true)
	nodes[0].hint = "3600"
	conf := func(of ...int) *config.Config {
		c := config.ForUpstream("127.0.0.1:0", addresses[0])
		c.Mode = "enforce"
		noShed(c)
		c.Clusters[0].Endpoints = nil
		c.Clusters[0].Balance.SlowStart = &config.SlowStart{Window: time.Second}
		for _, i := range of {
			c.Clusters[0].Endpoints = append(c.Clusters[0].Endpoints, addresses[i])
		}
		return c
	}
	p := start(t, conf(0, 1))
	url := "http://" + p.Addr("").String()
	for range 20 {
		if nodes[0].asked.Load() > 0 {
			break // several at once would find out together that this one rejects
		}
		fetch(t, url)
	}
	var changing sync.WaitGroup
	var stop atomic.Bool
	changing.Go(func() {
		for i := 0; !stop.Load(); i++ {
			<-time.After(50 * time.Millisecond)
			if err := p.Update(conf([][]int{{0, 1, 2}, {0, 2, 3}, {0, 1, 2, 3}, {0, 3, 1}}[i%4]...)); err != nil {
				t.Error(err)
			}
		}
	})
	got := offer(t, url, 300, longer(2*time.Second, 10*time.Second))
	stop.Store(true)
	changing.Wait()
	t.Logf("%v, %v", got, nodes)
	if got.sent.Load()-got.ok.Load() > 1 || nodes[0].asked.Load() > 20 {
		t.Errorf("%v, %v", got, nodes)
	}
	for _, e := range p.Stats(time.Now()).Clusters["upstream"].Endpoints {
		if e.Busy != 0 {
			t.Errorf("%s has %d in flight", e.Address, e.Busy)
		}
	}
}

// TestConnectionRateIsAheadOfTLS: connections above the rate are reset before a handshake,
// which would cost the processor time that the limit protects.
func TestConnectionRateIsAheadOfTLS(t *testing.T) {
	a := newAuthority(t)
	a.make(t, "proxy", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	c := config.ForUpstream("127.0.0.1:0", "127.0.0.1:1")
	c.Listeners[0].TLS = &config.ServerTLS{Certificate: a.file("proxy"), Key: a.file("proxy-key")}
	c.Listeners[0].ConnectionRate = config.RateLimit{Rate: 0.01, BurstSeconds: 300} // three
	p := start(t, c)
	var all []net.Conn
	reset := 0
	for range 13 {
		conn, err := net.DialTimeout("tcp", p.Addr("").String(), 20*time.Second)
		if errors.Is(err, syscall.ECONNRESET) {
			reset++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		all = append(all, conn)
	}
	until(t, "ten are rejected", func() bool { return p.Stats(time.Now()).Listeners[c.Defaulted().Listeners[0].Name].RejectedTotal == 10 })
	if n := p.Stats(time.Now()).Resets[c.Defaulted().Listeners[0].Name]; n != (resets.Counts{ConnectionRate: 10}) {
		t.Errorf("reset: %+v", n)
	}
	ends := make(chan error, len(all))
	for _, conn := range all { // no client has sent a byte
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second)) // without it the test only takes longer
		go func() {
			_, err := conn.Read(make([]byte, 1))
			ends <- err
		}()
	}
	for reset < 10 { // the counter may be ahead of the resets
		if err := <-ends; !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("after %d of 10 resets a connection ends with %v", reset, err)
		}
		reset++
	}
	select {
	case err := <-ends:
		t.Errorf("one of the three connections within the rate ends with %v", err)
	case <-time.After(100 * time.Millisecond):
	}
}

// TestLimitBeforeTheFirstRequest: the limit on requests in flight is known from the start, and is the
// same after a request.
func TestLimitBeforeTheFirstRequest(t *testing.T) {
	for configured, want := range map[int]int{0: inflight.DefaultMaxInFlight, 2: 2} {
		url, p := front(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(c *config.Config) { c.Clusters[0].Inflight.MaxInFlight = configured })
		for _, requests := range []int{0, 1} {
			for range requests {
				do(t, client(t, false), http.MethodGet, url, "")
			}
			for name, x := range p.Stats(time.Now()).Clusters {
				if got := x.Egress.InFlight.MaxInFlight; got != want {
					t.Errorf("max_requests %d: the limit of %s is %d after %d requests", configured, name, got, requests)
				}
			}
		}
	}
}
