package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/net/http2"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
)

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
			_, _ = io.WriteString(c, gatewaytest.CancelFrame(uint32(2*old+1)))
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

func slowloris(ctx context.Context, s *stage) error {
	every(ctx, 10*time.Millisecond, func(int) {
		if c, err := dial(ctx, s.address); err == nil {
			go drip(ctx, c, "GET / HTTP/1.1\r\nHost: a\r\n", "X: y\r\n", time.Second)
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
			_, _ = io.WriteString(c, gatewaytest.RequestFrame(http2.FlagHeadersEndStream, 2*stream+1, "GET", "/large"))
		}
	})
	return nil
}

func halfOpen(ctx context.Context, s *stage) error {
	every(ctx, 5*time.Millisecond, func(int) { _, _ = dial(ctx, s.address) })
	return nil
}
