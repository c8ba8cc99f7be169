package clients

import (
	"sync"
	"time"
)

// Idle connections. net/http would close them by [http.Server.IdleTimeout]. But where a
// connection of HTTP/2 ends before its streams, net/http starts the timer again, and keeps the
// memory of the connection until it fires: a client that connects, begins a request and leaves
// would cost 25 kB for two minutes each time. So the [Set] closes them, and net/http has no
// such timer.

// goAwayTime is the time between GOAWAY and the close of an HTTP/2 connection: requests that
// the client sends meanwhile are served.
// Each byte of the client prolongs it.
const goAwayTime, mostGoAwayTime = time.Second, 10 * time.Second

// goAway is the frame GOAWAY by which a server ends a connection gracefully: it names the
// highest stream that there can be, so it rejects none (RFC 9113, section 6.8).
var goAway = []byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// An ending is a connection that is idle for too long.
type ending struct {
	*clientConn

	heard int64 // when the last byte came
	close bool  // or else announce it
}

func (s *Set) idle() (all []ending) {
	now := monotonic()
	s.mu.Lock()
	defer s.mu.Unlock()
	drains := s.draining.Load()
	for _, c := range s.conns {
		since, most, heard := c.idle, s.idleTimeout, c.wire.heard.Load()
		switch {
		case drains > 0 && c.second && c.announced == 0:
			since, most = max(since, drains), Grace
		case c.announced > 0:
			// A request that came since may not have begun yet, where processors are short. Other frames do not keep the connection.
			since, most = max(c.announced, min(heard, c.announced+int64(mostGoAwayTime-goAwayTime))), goAwayTime
		case !c.second:
			since = max(since, c.wire.began.Load()) // of the next head: net/http bounds how long that may take
		}
		switch {
		case most <= 0 || len(c.exchanges) > 0 || c.closing || time.Duration(now-since) <= most:
			c.due = false
		case c.second && c.announced == 0 && c.wire.writers.Load() == 0: // else the client does not read, and GOAWAY could be within a frame
			c.announced = now
			all = append(all, ending{c, heard, false})
		case !c.due:
			// If this process stood still, there can be a request that nobody has read yet. It
			// is read before the next look.
			c.due = true
		default:
			all = append(all, ending{c, heard, true})
		}
	}
	return all
}

// end closes idle connections. It does not wait for their clients.
func end(all []ending, announcing *sync.WaitGroup) {
	for _, x := range all {
		if x.close {
			x.wire.finish(x.heard)
		} else {
			announcing.Go(x.announce)
		}
	}
}

// announce sends GOAWAY, unless a request has come since the connection was found idle. net/http may need several writes for a frame of
// an answer, between which GOAWAY must not come: so an exchange that begins meanwhile waits until it is sent. Other frames that net/http
// sends without a request are short, and one write each.
func (c *clientConn) announce() {
	c.announcing <- struct{}{}
	defer func() { <-c.announcing }()
	if !c.owner.silent(c) {
		return
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(goAwayTime))
	_, _ = c.conn.Write(goAway) // it is closed anyway
	_ = c.conn.SetWriteDeadline(time.Time{})
}

// silent reports whether nothing is sent on a connection. If not, it is not announced that it ends.
func (s *Set) silent(c *clientConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(c.exchanges) > 0 || c.wire.writers.Load() > 0 {
		c.announced = 0
		return false
	}
	return true
}

// answers waits until no GOAWAY is being sent.
func (c *clientConn) answers() {
	c.announcing <- struct{}{}
	<-c.announcing
}
