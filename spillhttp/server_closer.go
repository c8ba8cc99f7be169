package spillhttp

import (
	"net/http"
	"runtime"
	"sync/atomic"
	"time"
)

// A closer decides whether the answer to a request closes its connection: for rejections with the
// scope task, and for requests that had to wait. Behind a connection-level load balancer each
// connection leads to one task while it is open, so a client that keeps it reaches the same task
// again. Closing moves connections from a task that rejects to the others, whatever the client
// does. It costs a dial and, over TLS, a handshake; that equals the cost of a dozen rejections. So
// at most one in a hundred rejections and waits closes its connection, and retries in addition. The
// zero closer closes none.
type closer struct {
	one, many pacer        // limits for HTTP/1 and HTTP/2
	credit    atomic.Int64 // rejections and waits that no closed connection has used up
}

const (
	// closedPerProcessor is the maximum number of HTTP/1 connections that are closed each second,
	// for each processor. A TLS handshake takes a server 0.2 to 0.4 ms, so the tasks to which the
	// connections move need 1 to 2 % of their time for them.
	closedPerProcessor = 50
	// closedHTTP2 is the maximum number of HTTP/2 connections that are closed each second. Such a
	// connection carries many requests, and each of the next ones opens a new connection until one
	// is open. That is about twenty TLS handshakes, or 1 % of a processor. A second must pass
	// before the next one is closed, because the first one may have been enough.
	closedHTTP2 = 1
	// perClosed is how many rejections and waits allow one closed connection, and mostCredit is how
	// many are saved up.
	perClosed, mostCredit = 100, 1000
)

// paced sets the limits, which allow c to close connections.
func (c *closer) paced() {
	c.one.interval = time.Second / time.Duration(closedPerProcessor*runtime.GOMAXPROCS(0))
	c.many.interval = time.Second / closedHTTP2
}

// closes reports whether the rejection of r at the time now closes its connection. A retry over
// HTTP/1 always does, because it has reached this task again. The client pays for retries from its
// budget, and could close the connection itself.
func (c *closer) closes(now time.Time, r *http.Request) bool {
	if c.one.interval == 0 {
		return false
	}
	if c.paid() && c.of(r).take(now) {
		return true
	}
	said := fieldsOf(r, true)
	return r.ProtoMajor == 1 && said.attempt() > 0
}

// of returns the pacer for the protocol of a request.
func (c *closer) of(r *http.Request) *pacer {
	if r.ProtoMajor == 1 {
		return &c.one
	}
	return &c.many
}

// paid counts a rejection or a wait, and reports whether enough have been saved up to close a
// connection.
func (c *closer) paid() bool {
	credit := c.credit.Load()
	if credit < mostCredit {
		credit = c.credit.Add(1)
	}
	return credit >= perClosed && c.credit.CompareAndSwap(credit, credit-perClosed)
}

// waited may add a header to the answer to r, a request served after a wait, that closes the
// connection. As many requests can be in flight as the task has connections, so without rejections
// too many connections would keep the queue full. HTTP/2 connections stay, because they also carry
// requests that do not wait. Upgrades stay, because they use the header Connection themselves.
func (c *closer) waited(now time.Time, w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.Header["Upgrade"] == nil && c.one.interval > 0 && c.paid() && c.one.take(now) {
		w.Header()["Connection"] = valueClose
	}
}

// A pacer lets something happen once in an interval, and never if the interval is zero.
type pacer struct {
	interval time.Duration
	next     atomic.Int64 // when it may happen next, in nanoseconds since 1970
}

// take reports whether it may happen now, and if so begins an interval. If next is further away
// than an interval, the clock was set back, and next does not count.
func (p *pacer) take(now time.Time) bool {
	next, at := p.next.Load(), now.UnixNano()
	due := p.interval > 0 && (at >= next || next-at > int64(p.interval))
	return due && p.next.CompareAndSwap(next, at+int64(p.interval))
}
