package httpproxy

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// A node is an endpoint that serves a number of requests at once, queues as many, and rejects
// the others.
type node struct {
	slots   chan time.Time // the free ones, each with when it was to be free
	queue   int64
	service time.Duration
	hint    string // Retry-After of rejections
	rejects atomic.Bool
	report  func() string // endpoint-load-metrics; nil: none

	waiting                 atomic.Int64
	asked, served, rejected atomic.Int64
}

func newNode(slots int, service time.Duration) *node {
	n := &node{service: service, hint: "1"}
	n.resize(slots)
	return n
}

// resize changes how many requests are served at once, and how many wait. It must not be in use.
func (n *node) resize(slots int) {
	n.slots, n.queue = make(chan time.Time, slots), int64(slots)
	for range slots {
		n.slots <- time.Time{}
	}
}

func (n *node) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	n.asked.Add(1)
	if n.report != nil {
		w.Header().Set("Endpoint-Load-Metrics", n.report())
	}
	if n.rejects.Load() || n.waiting.Add(1) > n.queue+int64(cap(n.slots)) {
		if !n.rejects.Load() {
			n.waiting.Add(-1)
		}
		n.rejected.Add(1)
		if n.hint != "" {
			w.Header().Set("Retry-After", n.hint)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer n.waiting.Add(-1)
	n.work()
	n.served.Add(1)
	_, _ = io.WriteString(w, "done")
}

// work takes a slot for the time of a request. A timer that is late costs no capacity.
func (n *node) work() {
	begin := time.Now()
	if free := <-n.slots; free.After(begin) {
		begin = free
	}
	end := begin.Add(n.service/2 + rand.N(n.service))
	<-time.After(time.Until(end))
	n.slots <- end
}

func (n *node) String() string {
	return fmt.Sprintf("[asked %d, rejected %d]", n.asked.Load(), n.rejected.Load())
}

// before starts an enforcing proxy in front of nodes, and returns its URL.
func before(t testing.TB, nodes []*node, change func(*config.Config)) (string, *Proxy) {
	t.Helper()
	var addresses []string
	for _, n := range nodes {
		address, _ := upstreamAt(t, n)
		addresses = append(addresses, address)
	}
	return front(t, http.NotFoundHandler(), func(c *config.Config) {
		c.Mode = "enforce"
		c.Clusters[0].Endpoints = addresses
		if change != nil {
			change(c)
		}
	})
}

// An outcome is what clients saw of a load.
type outcome struct {
	sent, ok  atomic.Int64
	mu        sync.Mutex
	latencies []time.Duration
	statuses  map[int]int
}

func (o *outcome) success() float64 { return float64(o.ok.Load()) / float64(max(o.sent.Load(), 1)) }

// quantile returns a quantile of the latency of what was served.
func (o *outcome) quantile(q float64) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.latencies) == 0 {
		return 0
	}
	slices.Sort(o.latencies)
	return o.latencies[int(q*float64(len(o.latencies)))]
}

func (o *outcome) String() string {
	return fmt.Sprintf("%d sent, success %.4f, p50 %v, p99 %v, %v", o.sent.Load(), o.success(),
		o.quantile(0.5).Round(100*time.Microsecond), o.quantile(0.99).Round(100*time.Microsecond), o.statuses)
}

// offer sends GET requests at a rate for a time, without waiting for answers, and then
// waits for their end.
func offer(t testing.TB, url string, rate float64, d time.Duration, headers ...string) *outcome {
	t.Helper()
	o := &outcome{statuses: make(map[int]int)}
	c := client(t, false)
	tr := c.Transport.(*http.Transport)
	tr.MaxIdleConnsPerHost = 1000
	defer tr.CloseIdleConnections()
	var all sync.WaitGroup
	start := time.Now()
	next := time.Duration(0)
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for range ticks.C {
		elapsed := time.Since(start)
		for ; next < elapsed && next < d; next += time.Duration(rand.ExpFloat64() / rate * float64(time.Second)) {
			all.Go(func() { o.one(t, c, url, headers) })
		}
		if elapsed >= d {
			break
		}
	}
	all.Wait()
	return o
}

func (o *outcome) one(t testing.TB, c *http.Client, url string, headers []string) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	o.sent.Add(1)
	start := time.Now()
	resp, err := c.Do(r)
	status := 0
	if err == nil {
		status = resp.StatusCode
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	took := time.Since(start)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.statuses[status]++
	if status == http.StatusOK {
		o.ok.Add(1)
		o.latencies = append(o.latencies, took)
	}
}

// measure is for a machine that has nothing else to do: then tests of the upstream side take
// minutes, and assert times as well.
var measure = flag.Bool("measure", false, "take longer, and assert times too")

// needMachine skips a test that needs an otherwise idle machine.
func needMachine(t testing.TB) {
	t.Helper()
	if !*measure {
		t.Skip("measures a machine that has nothing else to do: go test -run " + t.Name() + " -measure")
	}
}

// longer returns short, or in a long run of the tests long.
func longer(short, long time.Duration) time.Duration {
	if !*measure {
		return short
	}
	return long
}

// needTime skips a test if unhindered requests took much longer than the endpoints need: the
// machine is busy, and measurements are meaningless.
func needTime(t testing.TB, o *outcome, service time.Duration) {
	t.Helper()
	if p99 := o.quantile(0.99); p99 > 5*service {
		t.Skipf("the machine has no time: the p99 is %v where endpoints take %v", p99, service)
	}
}

// fewer returns a rate for a long run of the tests, or a fifth of it.
func fewer(rate float64) float64 {
	if !*measure {
		return rate / 5
	}
	return rate
}
