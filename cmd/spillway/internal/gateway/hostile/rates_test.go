package hostile

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
)

// Clients that keep to the minimum rate, or that stop where a protocol lets them.

// aboveMinimum is a rate in bytes a second that is just above min_rate: neither body_timeout
// nor write_timeout ends such a client.
const aboveMinimum = 260

// loopback is another address of this machine for each i.
func loopback(i int) string { return fmt.Sprintf("127.%d.%d.%d", 1+i>>14&0x7f, i>>7&0x7f, 1+i&0x7f) }

// dialFrom connects from an address of this machine, and hangs up when ctx ends.
func dialFrom(ctx context.Context, address, from string) (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(ctx, "tcp", address)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = c.Close() })
	}
	return c, err
}

// steadyBodies: 33 connections a second, each from another address, whose bodies come just
// above the minimum rate: announced ones, short and long, and ones of unknown length.
func steadyBodies(ctx context.Context, s *stage) error {
	piece := strings.Repeat("x", aboveMinimum)
	every(ctx, time.Second/33, func(i int) {
		go func() {
			c, err := dialFrom(ctx, s.address, loopback(i))
			if err != nil {
				return
			}
			length := [...]string{"Content-Length: 60000", "Content-Length: 10000000", "Transfer-Encoding: chunked"}[i%3]
			text := piece
			if i%3 == 2 {
				text = fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
			}
			drip(ctx, c, "POST /attack HTTP/1.1\r\nHost: a\r\n"+length+"\r\n\r\n", text, time.Second)
		}()
	})
	return nil
}

// smallWindows: streams that read a large answer just above the minimum rate, 100 on each
// connection, by windows of a few bytes.
func smallWindows(ctx context.Context, s *stage) error {
	manyStreams(ctx, s, "/large", 1)
	return nil
}

// bursts: as many streams as those of smallWindows, whose answers are short and fit.
func bursts(ctx context.Context, s *stage) { manyStreams(ctx, s, "/work", 1<<16) }

// manyStreams opens a connection with 100 streams each second. The windows are for so many bytes
// first, and increase just above the minimum rate.
func manyStreams(ctx context.Context, s *stage, path string, window uint32) {
	every(ctx, time.Second, func(i int) {
		c, err := dialFrom(ctx, s.address, loopback(i))
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(io.Discard, c) }()
		const streams = 100
		var opened, more strings.Builder
		initial := string(binary.BigEndian.AppendUint32([]byte{0, 4}, window)) // SETTINGS_INITIAL_WINDOW_SIZE
		opened.WriteString(http2.ClientPreface + gatewaytest.Frame(http2.FrameSettings, 0, 0, initial) + gatewaytest.WindowFrame(0, 1<<30))
		for i := range uint32(streams) {
			opened.WriteString(gatewaytest.RequestFrame(http2.FlagHeadersEndStream, 2*i+1, "GET", path))
			more.WriteString(gatewaytest.WindowFrame(2*i+1, aboveMinimum))
		}
		go drip(ctx, c, opened.String(), more.String(), time.Second)
	})
}

// halfClosed: clients that close their side of the connection in the middle of a request, or
// after it, and read nothing.
func halfClosed(ctx context.Context, s *stage) error {
	every(ctx, time.Second/50, func(i int) {
		c, err := dial(ctx, s.address)
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, [...]string{
			"POST /attack HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nhalf",
			"POST /attack HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal",
			"GET /large HTTP/1.1\r\nHost: a\r\n\r\n",
			"GET /attack HTTP/1.1\r\nHost: a\r\n",
		}[i%4])
		_ = c.(*net.TCPConn).CloseWrite()
	})
	return nil
}

// trailers: bodies whose trailers never end, slowly and all at once.
func trailers(ctx context.Context, s *stage) error {
	const head = "POST /attack HTTP/1.1\r\nHost: a\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n"
	long := head + strings.Repeat("X: y\r\n", 100_000)
	every(ctx, time.Second/33, func(i int) {
		c, err := dial(ctx, s.address)
		if err != nil {
			return
		}
		if i%4 == 0 {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = io.WriteString(c, long)
			_ = c.Close()
			return
		}
		go drip(ctx, c, head, "X: "+strings.Repeat("y", aboveMinimum)+"\r\n", time.Second)
	})
	return nil
}

// expecting: clients that wait for 100 (Continue), and then send nothing.
func expecting(ctx context.Context, s *stage) error {
	every(ctx, time.Second/33, func(i int) {
		c, err := dialFrom(ctx, s.address, loopback(i))
		if err != nil {
			return
		}
		length := [...]string{"Content-Length: 1000", "Content-Length: 10000000", "Transfer-Encoding: chunked"}[i%3]
		_, _ = io.WriteString(c, "POST /attack HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"+length+"\r\n\r\n")
	})
	return nil
}
