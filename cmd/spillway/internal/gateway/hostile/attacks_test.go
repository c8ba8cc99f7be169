package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An attack is one kind of client that is hostile, slow or broken.
type attack struct {
	name string
	// config is added to the configuration, as YAML.
	config string
	// upstreams are the kinds of upstreams. None: one that is plain.
	upstreams []string
	// customer is the name that the honest client sends.
	customer string
	// lasts is the least time that the attack goes on at full strength before the honest
	// client is measured.
	lasts time.Duration
	// library is the kind of server that is attacked in place of the proxy.
	library string
	// files is the limit on open files of the proxy; 0: unchanged.
	files int
	// least is the share of the honest requests that must be served, in percent; 0: leastShare.
	least float64
	// run attacks until ctx ends. It returns an error for what should not have been possible.
	run func(ctx context.Context, s *stage) error
	// crowd sends to the proxy of the control, until ctx ends, what well-behaved clients of as many
	// requests would, so that the ratio is that of the attack and not of its requests. nil: nothing.
	crowd func(ctx context.Context, s *stage)
}

// honestAddress is where the honest client connects from, and attacks by default.
const honestAddress = "127.0.0.1"

// A stage is what an attack can see.
type stage struct {
	t         *testing.T
	address   string
	secure    bool // by TLS
	proxy     *process
	upstreams []*process
}

var attacks = []attack{
	{name: "POSTs that are reset", run: resets},
	{name: "silent calls of gRPC", lasts: 80 * time.Second, run: silentCalls},
	{name: "silent and dripping POSTs", run: drippingPosts},
	{name: "slow readers", run: slowReaders},
	{name: "batch: one byte per 25 s", config: "batch: {connections: 16}", run: batchBodies},
	{name: "all connections, silent", config: "max_connections: 200", run: allConnections},
	{name: "a customer over its quota upstream", config: "customer: {header: X-Customer, trusted_header: true}", run: greedyCustomer},
	{name: "around exempt paths", config: "exempt", run: aroundExempt},
	{name: "another's name", config: "quota", customer: "acme", run: anothersName},
	{name: "upgrades and tunnels", upstreams: []string{"lenient"}, run: tunnels},
	{name: "rapid reset", run: rapidReset},
	{name: "streams that the server resets", run: madeReset},
	{name: "an endpoint that rejects", upstreams: []string{"plain", "rejecting"}, run: nothing},
	{name: "256 files, 400 clients", files: 256, run: fewFiles},
	{name: "slow heads", run: slowloris},
	{name: "endless CONTINUATION", run: continuations},
	{name: "HPACK bomb", run: hpackBomb},
	{name: "100,000 headers", run: manyHeaders},
	{name: "smuggled requests", run: smuggled},
	{name: "streams without a window", run: noWindow},
	{name: "connections, half open", run: halfOpen},
	{name: "kill -9 of an upstream", upstreams: []string{"plain", "plain"}, run: killed},
	{name: "broken configurations", run: brokenFiles},
	{name: "bodies just above the minimum rate", run: steadyBodies},
	{name: "batch: bodies above the minimum rate", config: "batch: {connections: 16}", run: steadyBodies},
	{name: "streams with small windows", run: smallWindows, crowd: bursts},
	{name: "half-closed connections", run: halfClosed},
	{name: "endless trailers", run: trailers},
	{name: "bodies that wait for 100 (Continue)", run: expecting},
	{name: "pipelined requests, answers unread", run: pipelined},
	{name: "all connections, all at work", config: "apart", run: busyConnections},
	{name: "idle WebSocket connections", config: "max_connections: 200", upstreams: []string{"lenient"}, run: idleUpgrades},
	{name: "a flood under changing names", least: leastFloodShare, run: changingNames},
	{name: "50,000 header lines", least: leastFloodShare, run: longHeads},
	{name: "50,000 header lines, same address", least: leastFloodShare, run: nearHeads},
	{name: "library: 50,000 header lines", library: inClear, least: leastFloodShare, run: longHeads},
	{name: "library: the same, same address", library: inClear, least: leastFloodShare, run: nearHeads},
	{name: "library: 6,000 header lines", library: inClear, least: leastFloodShare, run: fullHeads},
	{name: "library, TLS: 50,000 header lines", library: overTLS, least: leastFloodShare, run: longHeads},
	{name: "library, TLS: silent handshakes", library: overTLS, run: silentHandshakes},
	{name: "library: silent and dripping POSTs", library: inClear, run: drippingPosts},
	{name: "library: bodies, slow but steady", library: inClear, run: steadyBodies},
	{name: "library: slow heads", library: inClear, run: slowloris},
	{name: "library: idle watches", library: inClear, run: idleWatches},
}

func nothing(ctx context.Context, _ *stage) error {
	<-ctx.Done()
	return nil
}

// flood sends requests at a rate from an address of this machine, and returns how many were
// answered with 200.
func flood(ctx context.Context, from string, rate int, ask func(i int) *http.Request) int64 {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32, DialContext: d.DialContext}}
	defer client.CloseIdleConnections()
	var served atomic.Int64
	var all sync.WaitGroup
	every(ctx, time.Second/time.Duration(rate), func(i int) {
		all.Go(func() {
			resp, err := client.Do(ask(i))
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				served.Add(1)
			}
		})
	})
	all.Wait()
	return served.Load()
}

func ask(s *stage, path string, headers ...string) *http.Request {
	r, err := http.NewRequest(http.MethodGet, "http://"+s.address+"/", nil) // the client has a timeout
	if err != nil {
		panic(err)
	}
	r.URL.Opaque = path
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// greedyCustomer: the upstream rejects 300 requests a second of one customer, at full strength
// 900.
func greedyCustomer(ctx context.Context, s *stage) error {
	flood(ctx, honestAddress, strength(300, 900), func(int) *http.Request { return ask(s, "/work", "X-Customer", "greedy") })
	return nil
}

// aroundExempt: paths that an upstream may take for others, and that begin as an exempt one
// does. They are SHEDDABLE with a rate limit of one a second, which must hold.
func aroundExempt(ctx context.Context, s *stage) error {
	paths := []string{
		"/healthz/..;/export", "/healthz/..\\export", "/healthz/%252e%252e/export", "/healthzebra", "/healthz/", "/healthz;/export",
		"/healthz%2f..%2fexport", "/healthz%2F", "/healthz/../export", "/healthz%00", "/healthz%3b", "/HEALTHZ",
		"/health/%2e%2e/export", "/health/..;/export", "/health/x/..%2f..%2fexport", "/health/a\\..\\..\\export", "/health/%5c..%5cexport",
	}
	began := time.Now()
	served := flood(ctx, honestAddress, 100, func(i int) *http.Request { return ask(s, paths[i%len(paths)]) })
	if most := int64(time.Since(began)/time.Second) + 2; served > most {
		return fmt.Errorf("%d requests passed a limit of one a second as if they were exempt", served)
	}
	return nil
}

// anothersName: a client that says it is a customer, as the honest client does. If that were
// believed, the two together would exceed the quota of the customer.
func anothersName(ctx context.Context, s *stage) error {
	flood(ctx, honestAddress, 400, func(i int) *http.Request {
		return ask(s, "/none", "X-Customer", [...]string{"acme", "acme", "acme", "cn:acme"}[i%4])
	})
	return nil
}

// tunnels: upgrades that no route allows.
func tunnels(ctx context.Context, s *stage) (err error) {
	every(ctx, 50*time.Millisecond, func(i int) {
		c, dialled := dial(ctx, s.address)
		if dialled != nil {
			return
		}
		defer c.Close()
		text := [...]string{
			"GET /attack HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
			"GET /attack HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n",
			"GET /attack HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: TLS/1.3\r\n\r\n",
			"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
		}[i%4]
		_, _ = io.WriteString(c, text)
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
		resp, broken := http.ReadResponse(bufio.NewReader(c), nil)
		if broken == nil && (resp.StatusCode == http.StatusSwitchingProtocols || i%4 == 3 && resp.StatusCode != http.StatusMethodNotAllowed) {
			err = fmt.Errorf("%.30q is answered with %d", text, resp.StatusCode)
		}
	})
	return err
}

// strength is the number for a short run in CI, or for one at full strength.
func strength(short, long int) int {
	if *full {
		return long
	}
	return short
}
