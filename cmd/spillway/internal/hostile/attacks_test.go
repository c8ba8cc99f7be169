package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An attack is one kind of client that means harm, or is broken.
type attack struct {
	name string
	// config is what is added to the configuration, as YAML.
	config string
	// upstreams are the kinds of them. None: one that is plain.
	upstreams []string
	// customer is who the honest client says it is.
	customer string
	// lasts is for how long at least the attack goes on at full strength, before the honest
	// client is measured.
	lasts time.Duration
	// files is the limit on open files of the proxy; 0: as it is.
	files int
	// run attacks until ctx ends. What it returns should not have been possible.
	run func(ctx context.Context, s *stage) error
}

// A stage is what an attack can see.
type stage struct {
	t         *testing.T
	address   string
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
	{name: "an endpoint that refuses", upstreams: []string{"plain", "refusing"}, run: nothing},
	{name: "256 files, 400 clients", files: 256, run: fewFiles},
	{name: "slow heads", run: slowloris},
	{name: "endless CONTINUATION", run: continuations},
	{name: "HPACK bomb", run: hpackBomb},
	{name: "100,000 headers", run: manyHeaders},
	{name: "smuggled requests", run: smuggled},
	{name: "HTTP/2 without a window", run: noWindow},
	{name: "connections, half open", run: halfOpen},
	{name: "kill -9 of an upstream", upstreams: []string{"plain", "plain"}, run: killed},
	{name: "broken configurations", run: brokenFiles},
}

func nothing(ctx context.Context, _ *stage) error {
	<-ctx.Done()
	return nil
}

// resets: one connection, 15 requests a second whose body never comes, each taken back
// after 3 s.
func resets(ctx context.Context, s *stage) error {
	c, err := second(ctx, s.address, "")
	if err != nil {
		return err
	}
	every(ctx, time.Second/15, func(i int) {
		_, _ = io.WriteString(c, post(uint32(2*i+1)))
		if old := i - 45; old >= 0 {
			_, _ = io.WriteString(c, reset(uint32(2*old+1)))
		}
	})
	return nil
}

// silentCalls: five connections, each with 250 calls that say nothing, opened one after
// the other.
func silentCalls(ctx context.Context, s *stage) error {
	var conns []net.Conn
	for range 5 {
		c, err := second(ctx, s.address, "")
		if err != nil {
			return err
		}
		conns = append(conns, c)
	}
	every(ctx, 8*time.Millisecond, func(i int) {
		if stream := i / 5; stream < 250 {
			_, _ = io.WriteString(conns[i%5], post(uint32(2*stream+1), "content-type", "application/grpc", "te", "trailers"))
		}
	})
	return nil
}

// drippingPosts: 33 connections a second. Some send nothing of their body and some
// very little.
func drippingPosts(ctx context.Context, s *stage) error {
	every(ctx, time.Second/33, func(i int) {
		go func() {
			c, err := dial(ctx, s.address)
			if err != nil {
				return
			}
			kind := [...]string{"application/grpc", "text/plain"}[i%2]
			drip(ctx, c, "POST /attack HTTP/1.1\r\nHost: a\r\nContent-Type: "+kind+"\r\nContent-Length: 1000000\r\n\r\n", [...]string{"", "x"}[i/2%2], time.Second)
		}()
	})
	return nil
}

// slowReaders: 33 connections a second that read a large answer slowly.
func slowReaders(ctx context.Context, s *stage) error {
	every(ctx, time.Second/33, func(int) { go slowReader(ctx, s.address, "/large") })
	return nil
}

// batchBodies: as many bodies as there are turns but one, at one byte per 25 s, and one
// that is too long to be kept.
func batchBodies(ctx context.Context, s *stage) error {
	for i := range 15 {
		c, err := dial(ctx, s.address)
		if err != nil {
			return err
		}
		go drip(ctx, c, fmt.Sprintf("POST /attack HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", 1000+i), "x", 25*time.Second)
	}
	<-ctx.Done()
	return nil
}

func allConnections(ctx context.Context, s *stage) error {
	for range 200 {
		if c, err := dial(ctx, s.address); err == nil {
			go drip(ctx, c, "POST /attack HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\nContent-Length: 1000\r\n\r\n", "", time.Second)
		}
	}
	<-ctx.Done()
	return nil
}

// flood asks at a rate, and returns how many were answered with 200.
func flood(ctx context.Context, rate int, ask func(i int) *http.Request) int64 {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
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
	flood(ctx, strength(300, 900), func(int) *http.Request { return ask(s, "/work", "X-Customer", "greedy") })
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
	served := flood(ctx, 100, func(i int) *http.Request { return ask(s, paths[i%len(paths)]) })
	if most := int64(time.Since(began)/time.Second) + 2; served > most {
		return fmt.Errorf("%d requests passed a limit of one a second as if they were exempt", served)
	}
	return nil
}

// anothersName: a client that says it is a customer, as the honest client does. If that were
// believed, the two together would exceed the quota of the customer.
func anothersName(ctx context.Context, s *stage) error {
	flood(ctx, 400, func(i int) *http.Request {
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

// rapidReset: 2,000 streams a second on one connection, at full strength 8,000, each taken back
// at once: with a body to come, as a body is what there is to hold.
func rapidReset(ctx context.Context, s *stage) error {
	for ctx.Err() == nil {
		c, err := second(ctx, s.address, "")
		if err != nil {
			return nil //nolint:nilerr // a proxy may reject such connections
		}
		stream := uint32(1)
		every(ctx, 10*time.Millisecond, func(int) {
			var b strings.Builder
			for range strength(20, 80) {
				b.WriteString(post(stream) + reset(stream))
				stream += 2
			}
			if _, err := io.WriteString(c, b.String()); err != nil {
				_ = c.Close()
			}
		})
	}
	return nil
}

// fewFiles: 400 clients that keep their connections, and ask now and then.
func fewFiles(ctx context.Context, s *stage) error {
	for i := range 400 {
		go func() {
			<-time.After(time.Duration(i) * 5 * time.Millisecond)
			for ctx.Err() == nil {
				c, err := dial(ctx, s.address)
				if err == nil {
					drip(ctx, c, "", "GET /large HTTP/1.1\r\nHost: a\r\n\r\n", 2*time.Second)
				}
			}
		}()
	}
	<-ctx.Done()
	return nil
}

func slowloris(ctx context.Context, s *stage) error {
	every(ctx, 10*time.Millisecond, func(int) {
		if c, err := dial(ctx, s.address); err == nil {
			go drip(ctx, c, "GET / HTTP/1.1\r\nHost: a\r\n", "X: y\r\n", time.Second)
		}
	})
	return nil
}

func continuations(ctx context.Context, s *stage) error {
	every(ctx, 20*time.Millisecond, func(int) {
		c, err := second(ctx, s.address, "")
		if err != nil {
			return
		}
		defer c.Close()
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(c, frame(frameHeaders, 0, 1, "")+many(2000, frame(frameContinuation, 0, 1, fields("a", "b"))))
	})
	return nil
}

// hpackBomb: one large header in the table, and thousands of references to it.
func hpackBomb(ctx context.Context, s *stage) error {
	value := many(4000, "x")
	insert := "\x40\x01a\x7f" + string([]byte{byte(len(value) - 127 | 0x80), byte((len(value) - 127) >> 7)}) + value
	every(ctx, 20*time.Millisecond, func(int) {
		c, err := second(ctx, s.address, "")
		if err != nil {
			return
		}
		defer c.Close()
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(c, frame(frameHeaders, endHeaders|endStream, 1, fields(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a")+insert+many(8000, "\xbe")))
	})
	return nil
}

func manyHeaders(ctx context.Context, s *stage) error {
	text := "GET / HTTP/1.1\r\nHost: a\r\n" + many(100_000, "X: y\r\n") + "\r\n"
	every(ctx, 50*time.Millisecond, func(int) {
		if c, err := dial(ctx, s.address); err == nil {
			_ = c.SetDeadline(time.Now().Add(time.Second))
			_, _ = io.WriteString(c, text)
			_ = c.Close()
		}
	})
	return nil
}

// noWindow: streams whose answers may not be sent.
func noWindow(ctx context.Context, s *stage) error {
	every(ctx, 500*time.Millisecond, func(int) {
		c, err := second(ctx, s.address, "\x00\x04\x00\x00\x00\x00") // SETTINGS_INITIAL_WINDOW_SIZE 0
		if err != nil {
			return
		}
		for stream := range uint32(50) {
			_, _ = io.WriteString(c, frame(frameHeaders, endHeaders|endStream, 2*stream+1,
				fields(":method", "GET", ":scheme", "http", ":path", "/large", ":authority", "a")))
		}
	})
	return nil
}

func halfOpen(ctx context.Context, s *stage) error {
	every(ctx, 5*time.Millisecond, func(int) { _, _ = dial(ctx, s.address) })
	return nil
}

// killed: one of two upstreams is gone, and does not say so.
func killed(ctx context.Context, s *stage) error {
	<-time.After(500 * time.Millisecond)
	s.upstreams[0].kill()
	<-ctx.Done()
	return nil
}

// brokenFiles: reloads of configurations that cannot be used.
func brokenFiles(ctx context.Context, s *stage) (err error) {
	dir := s.t.TempDir()
	every(ctx, 50*time.Millisecond, func(i int) {
		name := filepath.Join(dir, fmt.Sprint(i))
		text := [...]string{
			"", "\x00\xff", "listeners: [", "listeners: []", "mode: enforce\nlisteners: [{address: 127.0.0.1:0}]\nclusters: [{name: a, endpoints: [x]}]",
			many(1<<16, "["), "a: &a [*a, *a]", "listeners: [{address: 127.0.0.1:0, tls: {certificate: /none, key: /none}}]\nclusters: [{name: a, endpoints: ['127.0.0.1:1']}]",
		}[i%8]
		if os.WriteFile(name, []byte(text), 0o600) != nil {
			return
		}
		if s.proxy.ask("update "+name) == "false\n" {
			err = fmt.Errorf("the configuration %.40q is in use", text)
		}
	})
	return err
}
