package clients

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/seed90641741/spillway/internal/netconn"
)

// Grace is how long a connection is idle before a drain closes it: what its client has sent by
// then arrives, and a client that sends again and again learns from an answer that it ends.
const Grace = time.Second

// drainLook is the time between two looks at the connections of a drain.
const drainLook = 10 * time.Millisecond

// Drain has all answers from now on say that their connection ends: by HTTP/2 net/http makes GOAWAY of
// that. It closes connections of HTTP/1.1 that are idle, until all are closed, or ctx is done; [Set.Watch]
// ends those of HTTP/2 that are idle. A client may take until the time head to send the rest of a head; zero or less is no limit.
func (s *Set) Drain(ctx context.Context, head time.Duration) {
	s.draining.Store(monotonic())
	look := time.NewTicker(drainLook)
	defer look.Stop()
	for ctx.Err() == nil && s.closeIdle(head) > 0 {
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
}

// closeIdle closes idle connections, and returns how many of HTTP/1.1 are open.
func (s *Set) closeIdle(head time.Duration) (open int) {
	now := monotonic()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		if c.second || c.closing {
			continue // the server ends it, or who has taken it over
		}
		open++
		if len(c.exchanges) > 0 {
			continue
		}
		heard, most := c.wire.heard.Load(), Grace
		if c.arriving(heard) {
			if most = head; head <= 0 {
				continue
			}
		}
		if time.Duration(now-max(c.idle, heard, s.draining.Load())) > most {
			c.wire.finish(heard)
		}
	}
	return open
}

// arriving reports whether a part of a head has arrived, if the last byte came at heard. The first
// bytes by TLS belong to the handshake. A client may send the next head before net/http is done with
// the last request, but not before the end of its answer is written.
func (c *clientConn) arriving(heard int64) bool {
	_, secured := c.conn.(*tls.Conn)
	return heard > c.wire.wrote.Load() && (c.asked || !secured)
}

// wireOf returns the connection underneath that notes when bytes arrive. Without one it returns
// a new one, which knows of no bytes.
func wireOf(c net.Conn) *conn {
	if wire, ok := netconn.Find[*conn](c); ok {
		return wire
	}
	return &conn{Conn: c}
}
