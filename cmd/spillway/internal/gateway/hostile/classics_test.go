package hostile

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
)

// rapidReset: 2,000 streams a second on one connection, at full strength 8,000, each canceled
// at once, before its body: a server may keep what it has for the body.
func rapidReset(ctx context.Context, s *stage) error {
	s.manyStreams(ctx, gatewaytest.CancelFrame)
	return nil
}

// madeReset is the same with an error for which the server resets the stream: a window that
// grows by 0.
func madeReset(ctx context.Context, s *stage) error {
	s.manyStreams(ctx, func(stream uint32) string { return gatewaytest.WindowFrame(stream, 0) })
	return nil
}

// manyStreams begins streams until ctx ends, and sends after each how it ends. When the proxy
// closes the connection, the client makes another one.
func (s *stage) manyStreams(ctx context.Context, end func(stream uint32) string) {
	for ctx.Err() == nil {
		c, err := second(ctx, s.address, "")
		if err != nil {
			<-time.After(10 * time.Millisecond) // a proxy may reject such connections
			continue
		}
		open, broken := context.WithCancel(ctx)
		stream := uint32(1)
		every(open, 10*time.Millisecond, func(int) {
			var b strings.Builder
			for range strength(20, 80) {
				b.WriteString(post(stream) + end(stream))
				stream += 2
			}
			if _, err := io.WriteString(c, b.String()); err != nil {
				_ = c.Close()
				broken()
			}
		})
		broken()
	}
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

func continuations(ctx context.Context, s *stage) error {
	flood := gatewaytest.Frame(http2.FrameHeaders, 0, 1, "") + strings.Repeat(gatewaytest.Frame(http2.FrameContinuation, 0, 1, gatewaytest.Fields("a", "b")), 2000)
	every(ctx, 20*time.Millisecond, func(int) { s.sendOnce(ctx, flood) })
	return nil
}

// sendOnce sends text on a new connection of HTTP/2, for a second at most, and hangs up.
func (s *stage) sendOnce(ctx context.Context, text string) {
	c, err := second(ctx, s.address, "")
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(c, text)
}

// hpackBomb: one large header in the table, and thousands of references to it.
func hpackBomb(ctx context.Context, s *stage) error {
	value := strings.Repeat("x", 4000)
	insert := "\x40\x01a\x7f" + string([]byte{byte(len(value) - 127 | 0x80), byte((len(value) - 127) >> 7)}) + value
	bomb := gatewaytest.Frame(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 1,
		gatewaytest.Fields(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a")+insert+strings.Repeat("\xbe", 8000))
	every(ctx, 20*time.Millisecond, func(int) { s.sendOnce(ctx, bomb) })
	return nil
}

func manyHeaders(ctx context.Context, s *stage) error {
	text := "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 100_000) + "\r\n"
	every(ctx, 50*time.Millisecond, func(int) {
		if c, err := dial(ctx, s.address); err == nil {
			_ = c.SetDeadline(time.Now().Add(time.Second))
			_, _ = io.WriteString(c, text)
			_ = c.Close()
		}
	})
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
			strings.Repeat("[", 1<<16), "a: &a [*a, *a]", "listeners: [{address: 127.0.0.1:0, tls: {certificate: /none, key: /none}}]\nclusters: [{name: a, endpoints: ['127.0.0.1:1']}]",
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
