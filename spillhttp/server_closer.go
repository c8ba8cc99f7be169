package spillhttp

import (
	"net/http"
	"runtime"
	"sync/atomic"
	"time"
)

// A closer decides which rejections of scope task close their connection, and which answers to
// requests that had to wait. Behind a
// connection-level load balancer each connection leads to one task while it is open: a caller
// that keeps it would reach the same task again when it tries elsewhere. Closing moves
// connections from a task that rejects to the others, whatever the client. It costs a dial, and over TLS a handshake, which
// is worth a dozen rejections: so at most one in a hundred rejections and waits closes, but for retries. The zero closer
// closes none.
type closer struct {
	one, many pacer        // of HTTP/1, and of HTTP/2
	credit    atomic.Int64 // rejections and waits that have not been spent
}

const (
	// closedPerProcessor is how many connections of HTTP/1 are closed in a second. A handshake of TLS takes a server 0.2 to 0.4 ms: that
	// many for each processor are 1 to 2 % of the time of the tasks to which the connections move.
	closedPerProcessor = 50
	// closedHTTP2 is the same of HTTP/2. Such a connection carries many requests, and the next ones each open a new one, until
	// one is open: some twenty handshakes of TLS, which are 1 % of a processor. In between two, the
	// effect of the first shows: the task may have little enough to do.
	closedHTTP2 = 1
	// perClosed is how many rejections and waits pay for a connection that is closed, and mostCredit how many are kept.
	perClosed, mostCredit = 100, 1000
)

// paced makes c close.
func (c *closer) paced() {
	c.one.interval = time.Second / time.Duration(closedPerProcessor*runtime.GOMAXPROCS(0))
	c.many.interval = time.Second / closedHTTP2
}

// closes reports whether the rejection of r at the time now closes its connection. A retry
// that arrived over HTTP/1 always does: it has reached this task again. The client pays for
// retries from a budget, and could close the connection itself.
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

// paid counts a rejection or a wait, and reports whether enough of them pay for closing a connection.
func (c *closer) paid() bool {
	credit := c.credit.Load()
	if credit < mostCredit {
		credit = c.credit.Add(1)
	}
	return credit >= perClosed && c.credit.CompareAndSwap(credit, credit-perClosed)
}

// waited has the answer to r, which is served from the time now on after a wait, close the
// connection. As many requests as the task has connections can be in flight, so without a rejection
// the queue would always be as full as these connections make it. A connection of HTTP/2 carries
// requests that do not wait, too, and one that is to be upgraded has another header of that name.
func (c *closer) waited(now time.Time, w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.Header["Upgrade"] == nil && c.one.interval > 0 && c.paid() && c.one.take(now) {
		w.Header()["Connection"] = valueClose
	}
}

// A pacer lets something happen once in an interval; never if that is zero.
type pacer struct {
	interval time.Duration
	next     atomic.Int64 // in nanoseconds since 1970
}

// take reports whether it is time, and begins an interval then. What is further away than an
// interval was set before the clock stepped back.
func (p *pacer) take(now time.Time) bool {
	next, at := p.next.Load(), now.UnixNano()
	due := p.interval > 0 && (at >= next || next-at > int64(p.interval))
	return due && p.next.CompareAndSwap(next, at+int64(p.interval))
}
