package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/net/http2"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
)

// post begins a POST whose body is still to come.
func post(stream uint32, more ...string) string {
	return gatewaytest.RequestFrame(0, stream, "POST", "/attack", more...)
}

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
	_, err = io.WriteString(c, http2.ClientPreface+gatewaytest.Frame(http2.FrameSettings, 0, 0, settings))
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
