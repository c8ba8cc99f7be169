package httpproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
)

// quiet waits at the end of the test until its goroutines have ended.
func quiet(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
				return
			}
		}
	})
}

// upstreamAt serves h with all protocols on a free port, and counts connections.
func upstreamAt(t testing.TB, h http.Handler) (address string, connections *counter) {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections = new(counter)
	s := &http.Server{Handler: h, Protocols: new(http.Protocols), ConnState: connections.take}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(ln) })
	t.Cleanup(func() {
		_ = s.Close()
		serving.Wait()
	})
	return ln.Addr().String(), connections
}

// counter counts open connections.
type counter struct{ now, most, all atomic.Int64 }

func (c *counter) take(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.all.Add(1)
		n := c.now.Add(1)
		raise(&c.most, n)
	case http.StateClosed, http.StateHijacked:
		c.now.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

// raise raises a mark to n if it is lower.
func raise(mark *atomic.Int64, n int64) {
	for most := mark.Load(); n > most; most = mark.Load() {
		if mark.CompareAndSwap(most, n) {
			return
		}
	}
}

// Start starts a proxy with a configuration, as package gateway does.
func Start(ctx context.Context, c *config.Config, with Config) (*Proxy, error) {
	p := New(ctx, with)
	if err := p.Update(c); err != nil {
		p.cancel()
		return nil, err
	}
	return p, nil
}

// Update applies a configuration, as package gateway does.
func (p *Proxy) Update(c *config.Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	c = c.Defaulted()
	n, err := p.Prepare(c)
	if err != nil {
		return err
	}
	resources.Memory.SetLimit(c.MaxBuffered)
	n.Commit()
	return nil
}

// Close ends the proxy at once.
func (p *Proxy) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Drain(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// start starts a proxy that ends with the test.
func start(t testing.TB, c *config.Config) *Proxy {
	t.Helper()
	p, err := Start(context.Background(), c, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// front starts a proxy in front of h, and returns its URL.
func front(t testing.TB, h http.Handler, change func(*config.Config)) (string, *Proxy) {
	t.Helper()
	address, _ := upstreamAt(t, h)
	c := config.ForUpstream("127.0.0.1:0", address)
	if change != nil {
		change(c)
	}
	p := start(t, c)
	return "http://" + p.Addr("").String(), p
}

// client returns a separate client for a test, with HTTP/1.1 or cleartext HTTP/2.
func client(t testing.TB, second bool) *http.Client {
	t.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols)}
	if second {
		tr.Protocols.SetUnencryptedHTTP2(true)
	} else {
		tr.Protocols.SetHTTP1(true)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

// do sends a request and reads the answer.
func do(t testing.TB, c *http.Client, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req := httptest.NewRequestWithContext(context.Background(), method, url, r)
	req.RequestURI = ""
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// steadily runs a test in which something must be done before a timeout, which is then waited for. A machine that stands still can take
// all of the timeout. So a test that fails while it did is repeated, with a timeout that is eight times as long. In a run in which it
// did not, the first failure counts.
func steadily(t *testing.T, timeout time.Duration, try func(timeout time.Duration) error) {
	t.Helper()
	const longest = 40 * time.Second
	for ; ; timeout *= 8 {
		stall := watchStalls()
		err, stood := try(timeout), stall()
		if err == nil {
			return
		}
		if stood < timeout/8 || timeout*8 > longest {
			t.Errorf("with a timeout of %v, on a machine that stood still for %v: %v", timeout, stood, err)
			return
		}
	}
}

// watchStalls returns a function that ends the watch and returns the longest time for which this process did not run.
func watchStalls() func() time.Duration {
	const often = 5 * time.Millisecond
	end, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		ticks := time.NewTicker(often)
		defer ticks.Stop()
		most, last := time.Duration(0), time.Now()
		for {
			select {
			case <-ticks.C:
				now := time.Now()
				most, last = max(most, now.Sub(last)-often), now
			case <-end:
				longest <- max(most, time.Since(last)-often)
				return
			}
		}
	}()
	return func() time.Duration {
		close(end)
		return <-longest
	}
}

// closedAddress is where nothing listens. The port of a listener that was closed would do only
// until another one gets it, such as the proxy's.
const closedAddress = "127.0.0.1:1"
