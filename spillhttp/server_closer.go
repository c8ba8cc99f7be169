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
// connections from a task that rejects to the others, whatever the client. The zero closer
// closes none.
type closer struct{ one, many pacer } // of HTTP/1, and of HTTP/2

// How many connections are closed in a second.
const (
	// A handshake of TLS takes a server 0.2 to 0.4 ms. That many for each processor are
	// 1 to 2 % of the time of the tasks to which the connections move.
	closedPerProcessor = 50
	// A connection of HTTP/2 carries many requests, and the next ones each open a new one, until
	// one is open: some twenty handshakes of TLS, which are 1 % of a processor. In between two, the
	// effect of the first shows: the task may have little enough to do.
	closedHTTP2 = 1
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
	if r.ProtoMajor != 1 {
		return c.many.take(now)
	}
	if c.one.take(now) {
		return true
	}
	said := fieldsOf(r, true, false)
	return c.one.interval > 0 && said.attempt() > 0
}

// waited has the answer to r, which is served from the time now on after a wait, close the
// connection. As many requests as the task has connections can be in flight, so without a rejection
// the queue would always be as full as these connections make it. A connection of HTTP/2 carries
// requests that do not wait, too, and one that is to be upgraded has another header of that name.
func (c *closer) waited(now time.Time, w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.Header["Upgrade"] == nil && c.one.take(now) {
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
