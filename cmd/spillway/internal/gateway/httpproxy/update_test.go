package httpproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/freeport"
)

func TestUpdateIsAllOrNothing(t *testing.T) {
	quiet(t)
	a, _ := upstreamAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a") }))
	b, _ := upstreamAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "b") }))
	c := config.ForUpstream("127.0.0.1:0", a)
	c.Listeners[0].Name = "main"
	p := start(t, c)
	url := "http://" + p.Addr("main").String()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	x := client(t, false)
	gate := p.gates[gateKey{"main", "upstream"}]
	for name, row := range map[string]struct {
		change func(*config.Config)
		want   string
	}{
		"a wrong value": {func(c *config.Config) { c.Clusters[0].Throttle.K = 0.5 }, "clusters[0].throttle.k is 0.5"},
		"a taken port": {func(c *config.Config) {
			c.Listeners = append(c.Listeners, config.Listener{Address: taken.Addr().String()})
		}, "address already in use"},
		"no certificate": {func(c *config.Config) {
			c.Listeners = append(c.Listeners, config.Listener{Address: "127.0.0.1:0", TLS: &config.ServerTLS{Certificate: "none.pem", Key: "none.pem"}})
		}, "none.pem"},
	} {
		bad := config.ForUpstream("127.0.0.1:0", b)
		bad.Listeners[0].Name = "main"
		row.change(bad)
		if err := p.Update(bad); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", name, err, row.want)
		}
		if _, body := do(t, x, http.MethodGet, url, ""); body != "a" {
			t.Errorf("%s: half of it is in place: %q", name, body)
		}
	}
	good := config.ForUpstream("127.0.0.1:0", b)
	good.Listeners[0].Name = "main"
	if err := p.Update(good); err != nil {
		t.Fatal(err)
	}
	if _, body := do(t, x, http.MethodGet, url, ""); body != "b" {
		t.Errorf("after the update: %q", body)
	}
	if p.gates[gateKey{"main", "upstream"}] != gate {
		t.Error("the gate has forgotten what it had learnt")
	}
	good.Listeners[0].IdleTimeout = time.Minute // takes another server on the same socket
	if err := p.Update(good); err != nil {
		t.Fatal(err)
	}
	if _, body := do(t, x, http.MethodGet, url, ""); body != "b" || "http://"+p.Addr("main").String() != url {
		t.Errorf("after a change of the listener: %q at %v", body, p.Addr("main"))
	}
	good.Listeners[0].Name, good.Clusters[0].Name = "other", "else"
	if err := p.Update(good); err != nil {
		t.Fatal(err)
	}
	if _, body := do(t, client(t, false), http.MethodGet, "http://"+p.Addr("other").String(), ""); body != "b" || p.Addr("main") != nil {
		t.Errorf("after everything got another name: %q", body)
	}
}

func TestDrainLetsRequestsEnd(t *testing.T) {
	quiet(t)
	for _, second := range []bool{false, true} {
		begun, end := make(chan struct{}), make(chan struct{})
		url, p := front(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "half ")
			_ = http.NewResponseController(w).Flush()
			close(begun)
			<-end
			fmt.Fprint(w, "whole")
		}), nil)
		answers := make(chan string, 1)
		x := client(t, second)
		go func() {
			resp, err := x.Get(url)
			if err != nil {
				answers <- err.Error()
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			answers <- fmt.Sprint(string(body), err)
		}()
		<-begun
		drained := make(chan error)
		go func() { drained <- p.Drain(context.Background()) }()
		for end := time.Now().Add(time.Minute); ; {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				break
			}
			_ = c.Close()
			if time.Now().After(end) {
				t.Fatal("a proxy that drains accepts connections")
			}
		}
		select {
		case err := <-drained:
			t.Fatalf("drained with a request under way: %v", err)
		default:
		}
		close(end)
		if got := <-answers; got != "half whole<nil>" {
			t.Errorf("HTTP/2 %v: %s", second, got)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if err := p.Update(config.ForUpstream("127.0.0.1:0", "127.0.0.1:1")); !errors.Is(err, errClosed) {
			t.Errorf("a drained proxy was changed: %v", err)
		}
	}
}

func TestDrainCutsOffInTheEnd(t *testing.T) {
	quiet(t)
	begun := make(chan struct{})
	url, p := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}), func(c *config.Config) { c.DrainTimeout = 50 * time.Millisecond })
	x := client(t, false)
	answered := make(chan error, 1)
	go func() {
		resp, err := x.Get(url)
		if err == nil {
			_ = resp.Body.Close()
			err = errors.New(resp.Status)
		}
		answered <- err
	}()
	<-begun
	if err := p.Drain(context.Background()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cut off in silence: %v", err)
	}
	if err := <-answered; err == nil {
		t.Error("answered")
	}
}

// TestDrainWaitsForFormerListeners: a request on a listener that has been replaced has the
// same drain timeout as all others.
func TestDrainWaitsForFormerListeners(t *testing.T) {
	quiet(t)
	begun, end := make(chan struct{}), make(chan struct{})
	address, _ := upstreamAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-end
		fmt.Fprint(w, "whole")
	}))
	c := config.ForUpstream("127.0.0.1:0", address)
	p := start(t, c)
	answers := make(chan string, 1)
	x := client(t, false)
	go func() {
		resp, err := x.Get("http://" + p.Addr("").String())
		if err != nil {
			answers <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		answers <- fmt.Sprintf("%d %s %v", resp.StatusCode, body, err)
	}()
	<-begun
	c.Listeners[0].IdleTimeout = time.Minute // takes another server
	if err := p.Update(c); err != nil {
		t.Fatal(err)
	}
	drained := make(chan error, 1)
	go func() { drained <- p.Drain(context.Background()) }()
	for p.Serving() {
		<-time.After(time.Millisecond)
	}
	select {
	case got := <-answers:
		t.Errorf("cut off: %s", got)
		answers <- got
	case <-time.After(100 * time.Millisecond): // long enough for what would be wrong
	}
	close(end)
	if got := <-answers; got != "200 whole <nil>" {
		t.Error(got)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// TestFormerListenersAreCutOffInTheEnd: former listeners do not delay the end of the proxy
// after the drain timeout.
func TestFormerListenersAreCutOffInTheEnd(t *testing.T) {
	quiet(t)
	begun := make(chan struct{})
	address, _ := upstreamAt(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}))
	c := config.ForUpstream("127.0.0.1:0", address)
	p := start(t, c)
	answered := make(chan error, 1)
	x := client(t, false)
	go func() {
		resp, err := x.Get("http://" + p.Addr("").String())
		if err == nil {
			_ = resp.Body.Close()
			err = errors.New(resp.Status)
		}
		answered <- err
	}()
	<-begun
	c.Listeners[0].IdleTimeout = time.Minute // takes another server
	if err := p.Update(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cut off in silence: %v", err)
	}
	if err := <-answered; err == nil {
		t.Error("answered")
	}
}

// TestConnectionsThatWaitAreServed: connections wait for connection_rate when their listener is replaced, or drains. They have
// been accepted, so that their requests are answered.
func TestConnectionsThatWaitAreServed(t *testing.T) {
	quiet(t)
	const many = 5
	address, _ := upstreamAt(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, end := range map[string]func(p *Proxy, c *config.Config) error{
		"replaced": func(p *Proxy, c *config.Config) error { c.Listeners[0].IdleTimeout = time.Minute; return p.Update(c) },
		"drained":  func(p *Proxy, _ *config.Config) error { return p.Drain(context.Background()) },
	} {
		c := config.ForUpstream("127.0.0.1:0", address)
		c.Listeners[0].ConnectionRate = config.RateLimit{Rate: 0.01, BurstSeconds: 100, QueueDepth: many}
		p := start(t, c)
		var all []net.Conn
		for range many {
			all = append(all, dial(t, p))
			fmt.Fprint(all[len(all)-1], "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		}
		until(t, "all but one wait", func() bool { return p.Stats(time.Now()).Listeners["127.0.0.1:0"].Rate.Waiting == many-1 })
		ended := make(chan error, 1)
		go func() { ended <- end(p, c) }()
		for i, conn := range all {
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("connection %d of a listener that is %s gets %v, %v", i, name, resp, err)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestFreePortsAreNotShared: two listeners on any free port have one each, whatever
// changes.
func TestFreePortsAreNotShared(t *testing.T) {
	quiet(t)
	c := config.ForUpstream("127.0.0.1:0", "127.0.0.1:9")
	c.Listeners[0].Name = "a"
	p := start(t, c)
	a := p.Addr("a").String()
	c.Listeners = append(c.Listeners, config.Listener{Name: "b", Address: "127.0.0.1:0"})
	for i := range 10 {
		c.Listeners[0].IdleTimeout, c.Listeners[1].IdleTimeout = time.Duration(i+1)*time.Second, time.Duration(i+1)*time.Second
		if err := p.Update(c); err != nil {
			t.Fatal(err)
		}
		if b := p.Addr("b").String(); p.Addr("a").String() != a || b == a {
			t.Fatalf("a is on %v, which was %s, and b on %s", p.Addr("a"), a, b)
		}
	}
}

// A ledger is an upstream that remembers across restarts which requests it has applied.
type ledger struct {
	mu   sync.Mutex
	done map[string]int
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || string(body) != r.Header.Get("X-Id") {
		http.Error(w, "what came is not what was sent", http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	l.done[string(body)]++
	l.mu.Unlock()
	fmt.Fprint(w, "done")
}

// flaky serves from an address, and begins again and again.
func flaky(t *testing.T, h http.Handler, stop <-chan struct{}) (address string, ended *sync.WaitGroup) {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	address, ended = ln.Addr().String(), new(sync.WaitGroup)
	ended.Go(func() {
		for i := 0; ; i++ {
			s := &http.Server{Handler: h}
			var serving sync.WaitGroup
			serving.Go(func() { _ = s.Serve(ln) })
			select {
			case <-time.After(100 * time.Millisecond):
			case <-stop:
				_ = s.Close()
				serving.Wait()
				return
			}
			if i%2 == 0 { // with and without a farewell
				_ = s.Close()
			} else {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				_ = s.Shutdown(ctx)
				cancel()
				_ = s.Close()
			}
			serving.Wait()
			if ln, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", address); err != nil {
				return
			}
		}
	})
	return address, ended
}

// TestNothingIsLostOrDoneTwice restarts upstreams and changes the configuration under load. A
// request that was answered with success must have been applied exactly once, and any other at
// most once: these requests are not idempotent.
func TestNothingIsLostOrDoneTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	quiet(t)
	l := &ledger{done: make(map[string]int)}
	stop := make(chan struct{})
	a, endedA := flaky(t, l, stop)
	b, endedB := flaky(t, l, stop)
	c := config.ForUpstream("127.0.0.1:0", a)
	c.Mode, c.Listeners[0].Name, c.Clusters[0].Endpoints = "enforce", "main", []string{a, b}
	p := start(t, c)
	url := "http://" + p.Addr("main").String()

	var told sync.Map
	var failed, number atomic.Int64
	var load sync.WaitGroup
	for range 8 {
		load.Go(func() {
			x := client(t, false)
			for {
				select {
				case <-stop:
					return
				default:
				}
				id := strconv.FormatInt(number.Add(1), 10)
				req := httptest.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(id))
				req.RequestURI = ""
				req.Header.Set("X-Id", id)
				resp, err := x.Do(req)
				if err != nil {
					failed.Add(1)
					continue
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				switch {
				case err == nil && resp.StatusCode == http.StatusOK && string(body) == "done":
					told.Store(id, true)
				case resp.StatusCode == http.StatusBadRequest:
					t.Errorf("the request %s was mangled", id)
				default:
					failed.Add(1)
				}
			}
		})
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := range 30 {
		<-tick.C
		d := *c
		d.Clusters = []config.Cluster{c.Clusters[0]}
		d.Clusters[0].Throttle.K = 2 + float64(i%3)
		d.Routes = []config.Route{{Path: "/" + strings.Repeat("x", i%2)}, {}}
		if err := p.Update(&d); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	load.Wait()
	endedA.Wait()
	endedB.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	good := 0
	for id, n := range l.done {
		if n > 1 {
			t.Errorf("%s was done %d times", id, n)
		}
		if _, ok := told.Load(id); ok {
			good++
		}
	}
	all := 0
	told.Range(func(id, _ any) bool {
		if all++; l.done[id.(string)] != 1 {
			t.Errorf("%s was told done, and done %d times", id, l.done[id.(string)])
		}
		return true
	})
	t.Logf("%d requests: %d done, %d failed", number.Load(), good, failed.Load())
	if good < 100 || int64(good) < number.Load()/2 {
		t.Errorf("only %d of %d requests were done", good, number.Load())
	}
}
