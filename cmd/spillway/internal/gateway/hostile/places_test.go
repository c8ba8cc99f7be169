package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Clients that take all of something while they behave well, each for itself.

// busyConnections: two addresses hold as many connections as they get, and on each a
// request is always at work. None of them waits for its client.
func busyConnections(ctx context.Context, s *stage) error {
	var all sync.WaitGroup
	for i := range 250 {
		all.Go(func() {
			for ctx.Err() == nil {
				if c, err := dialFrom(ctx, s.address, loopback(i/200)); err == nil {
					askAgain(c, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
				}
				<-time.After(100 * time.Millisecond)
			}
		})
	}
	all.Wait()
	return nil
}

// askAgain sends a request whenever the last one is answered, until the connection ends.
func askAgain(c net.Conn, request string) {
	defer c.Close()
	answer := make([]byte, 4<<10)
	for {
		if _, err := io.WriteString(c, request); err != nil {
			return
		}
		if _, err := c.Read(answer); err != nil {
			return
		}
	}
}

// idleUpgrades: as many idle WebSocket connections as there may be connections, and more.
func idleUpgrades(ctx context.Context, s *stage) error {
	every(ctx, 10*time.Millisecond, func(i int) {
		if c, err := dialFrom(ctx, s.address, loopback(i%50)); err == nil {
			_, _ = io.WriteString(c, "GET /attack HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		}
	})
	return nil
}

// pipelined: connections that send many requests at once, and never read an answer.
func pipelined(ctx context.Context, s *stage) error {
	text := strings.Repeat("GET /none HTTP/1.1\r\nHost: a\r\n\r\nPOST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 500)
	for i := range strength(10, 30) {
		go func() {
			for ctx.Err() == nil {
				c, err := dialFrom(ctx, s.address, loopback(i))
				if err != nil {
					continue
				}
				for err == nil && ctx.Err() == nil {
					_, err = io.WriteString(c, text)
				}
				_ = c.Close()
			}
		}()
	}
	<-ctx.Done()
	return nil
}

// changingNames: a flood of more requests than there are processors for, from one address
// that names another client, another customer and another class in each of them.
func changingNames(ctx context.Context, s *stage) error {
	flood(ctx, loopback(1), strength(500, 3000), func(i int) *http.Request {
		name := fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
		return ask(s, "/none", "X-Forwarded-For", name, "X-Real-Ip", name, "X-Customer", name, "X-Request-Criticality", "CRITICAL_PLUS",
			"Baggage", "criticality=CRITICAL_PLUS", "X-Envoy-Attempt-Count", "9", "X-Forwarded-Client-Cert", "URI="+name)
	})
	return nil
}
