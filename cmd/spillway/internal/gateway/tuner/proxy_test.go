package tuner_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/tune"
)

// hold is how long a request occupies its slot. It is long compared to the delays of a busy
// machine.
const hold = 50 * time.Millisecond

// A pool is a backend where each request holds one of a number of slots for a while.
type pool struct {
	mu    sync.Mutex
	free  *sync.Cond
	size  int
	taken int
}

func (p *pool) ServeHTTP(http.ResponseWriter, *http.Request) {
	p.mu.Lock()
	for p.taken >= p.size {
		p.free.Wait()
	}
	p.taken++
	p.mu.Unlock()
	<-time.After(hold)
	p.mu.Lock()
	p.taken--
	p.mu.Unlock()
	p.free.Broadcast()
}

func (p *pool) resize(size int) {
	p.mu.Lock()
	p.size = size
	p.mu.Unlock()
	p.free.Broadcast()
}

const tunedProxy = `mode: enforce
listeners: [{address: "127.0.0.1:0"}]
clusters:
  - name: web
    endpoints: ["%s"]
    rate_limit: {rate: 200, burst_seconds: 0.1}
    shed: {mode: off}
    throttle: {mode: off}
    retry: {max_attempts: 1}
    tune: {mode: enforce, limit: %s, latency: 150ms, reaction: 200ms}
`

// start starts a proxy in front of a pool, under more load than either of them takes,
// and returns what reports how its tuner stands.
func start(t *testing.T, p *pool, text string) (*gateway.Proxy, func() tune.Stats) {
	p.free = sync.NewCond(&p.mu)
	backend := httptest.NewServer(p)
	t.Cleanup(backend.Close)
	c, err := config.Parse("test", fmt.Appendf(nil, text, backend.Listener.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	x, err := gateway.Start(context.Background(), c, gateway.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	load(t, "http://"+x.Addr("").String())
	return x, func() tune.Stats { return x.Stats(time.Now()).Tuners["web"] }
}

// load sends about 300 requests per second until the test ends.
func load(t *testing.T, url string) {
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 400}}
	var all sync.WaitGroup
	places := make(chan struct{}, 400)
	all.Go(func() {
		ticks := time.NewTicker(10 * time.Millisecond)
		defer ticks.Stop()
		for ctx.Err() == nil {
			<-ticks.C
			for range 3 {
				select {
				case places <- struct{}{}:
				default:
					continue
				}
				all.Go(func() {
					defer func() { <-places }()
					r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
					if err != nil {
						t.Error(err)
						return
					}
					if answer, err := client.Do(r); err == nil { // an error ends nothing
						_ = answer.Body.Close()
					}
				})
			}
		}
	})
	t.Cleanup(func() { cancel(); all.Wait(); client.CloseIdleConnections() })
}

// until waits for a limit, and fails if it does not come.
func until(t *testing.T, stats func() tune.Stats, what string, is func(limit float64) bool) {
	t.Helper()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-ticks.C {
		if is(stats().Limit) {
			return
		}
	}
	s := stats()
	var moves strings.Builder
	for _, m := range s.Moves {
		fmt.Fprintln(&moves, m)
	}
	t.Fatalf("the limit is %v, want %s; its last moves:\n%s", s.Limit, what, &moves)
}

// TestProxyFollowsItsCluster lets a backend lose capacity and get more than it had, over
// real connections.
func TestProxyFollowsItsCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()                                                                                                       // a small load for seconds
	p := &pool{size: 2}                                                                                                // 40 a second
	patient := strings.NewReplacer("limit: %s", "limit: rate", "latency: 150ms", "latency: 600ms").Replace(tunedProxy) // a pause of the machine is no overload
	x, stats := start(t, p, patient)
	until(t, stats, "at most 48", func(l float64) bool { return l <= 48 })
	low := stats().Limit
	c, err := config.Parse("test", fmt.Appendf(nil, patient, "127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	c.Listeners[0], c.Clusters[0].Endpoints = config.Listener{Address: "127.0.0.1:0"}, endpoints(x)
	c.Clusters[0].RetryAfter = time.Minute // any change
	if err := x.Update(c); err != nil {
		t.Fatal(err)
	}
	if s := stats(); s.Limit > 1.5*low {
		t.Errorf("after another configuration the limit is %v, was %v", s.Limit, low)
	}
	p.resize(8)
	until(t, stats, "at least 110", func(l float64) bool { return l >= 110 }) // of 160
	s := stats()
	for _, m := range s.Moves {
		if m.Reason() == "" || m.To < s.Min || m.To > s.Max || !m.Applied {
			t.Errorf("a move: %+v", m)
		}
	}
	c.Clusters[0].Tune = nil
	if err := x.Update(c); err != nil {
		t.Fatal(err)
	}
	if n := len(x.Stats(time.Now()).Tuners); n != 0 {
		t.Errorf("%d tuners without a configuration", n)
	}
}

// endpoints returns where a proxy sends to.
func endpoints(x *gateway.Proxy) (all []string) {
	for _, e := range x.Stats(time.Now()).Clusters["web"].Endpoints {
		all = append(all, e.Address)
	}
	return all
}

func TestProxyFollowsInFlight(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel() // a small load for seconds
	p := &pool{size: 2}
	text := strings.NewReplacer("rate_limit: {rate: 200, burst_seconds: 0.1}", "inflight: {max_in_flight: 100}", "limit: %s", "limit: in_flight").Replace(tunedProxy)
	_, stats := start(t, p, text)
	until(t, stats, "at most 12", func(l float64) bool { return l <= 12 })
	p.resize(8)
	until(t, stats, "at least 16", func(l float64) bool { return l >= 16 })
}
