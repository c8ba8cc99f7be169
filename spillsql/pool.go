package spillsql

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// A pool bounds the open connections of a Connector. database/sql keeps the idle ones and
// asks for another only if none is idle. Here the caller waits, in the queue, until a
// connection is returned, which then changes hands: for database/sql the returned
// one is invalid, and gets it again, as a new one, for the caller that waits. No connection is
// closed for that.
type pool struct {
	limit       int
	full        *spillway.RejectedError // as all connections are in use
	unreachable *spillway.RejectedError // as the server refuses connections
	lifetime    atomic.Int64            // of a connection; 0: without end

	mu      sync.Mutex
	queue   queue
	open    int         // connections, and rights to open one
	opening opening     // those rights
	idle    []*conn     // kept by database/sql
	hollow  int         // conns that database/sql keeps, whose connections have changed hands
	spare   []*physical // connections that neither database/sql nor a caller has
	closed  bool
}

// A physical is a connection of the driver. Not more than one conn has it.
type physical struct {
	driver.Conn
	since time.Time              // when it was opened
	stmts map[string]driver.Stmt // prepared, and in use by nobody
	left  []*stmt                // prepared by a former user, who had not closed them when it changed hands
}

// acquire returns a connection that has changed hands, or nil for the right to open one.
// The caller passes the result of that to opened.
func (p *pool) acquire(ctx context.Context, class spillway.Criticality) (*physical, error) {
	p.mu.Lock()
	if taken := p.kept(); taken != nil {
		p.mu.Unlock()
		return taken, nil
	}
	if p.mayOpen() {
		p.mu.Unlock()
		return nil, nil //nolint:nilnil // the right to open one
	}
	w := &waiter{class: class.Index(), ready: make(chan grant, 1)}
	entered := p.queue.enter(time.Now(), w)
	p.mu.Unlock()
	if !entered {
		return nil, p.rejection()
	}
	select {
	case g := <-w.ready:
		return g.result(p)
	case <-ctx.Done():
		return nil, p.leave(ctx, w)
	}
}

// kept takes a connection that is not in use, or returns nil. The lock is held.
func (p *pool) kept() (taken *physical) {
	if n := len(p.spare); n > 0 {
		taken, p.spare = p.spare[n-1], p.spare[:n-1]
	} else if n := len(p.idle); n > 0 { // returned since database/sql looked
		taken = p.empty(p.idle[n-1])
		p.idle = p.idle[:n-1]
	}
	return taken
}

// empty takes the connection from a conn that database/sql keeps. The lock is held.
func (p *pool) empty(c *conn) *physical {
	c.hollow = true
	p.hollow++
	return c.part()
}

// filled takes in that c is no longer kept without a connection, and reports whether it was. The lock is held.
func (p *pool) filled(c *conn) bool {
	was := c.hollow
	if was {
		p.hollow--
	}
	c.hollow = false
	return was
}

func (g grant) result(p *pool) (*physical, error) {
	if g.rejected {
		return nil, p.rejection()
	}
	return g.physical, nil
}

// rejection returns the error of a caller for which the queue is too long.
func (p *pool) rejection() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open < p.limit {
		return p.unreachable
	}
	return p.full
}

// leave ends the wait of a caller whose context has ended, and passes on what it got.
func (p *pool) leave(ctx context.Context, w *waiter) error {
	p.mu.Lock()
	waiting := p.queue.leave(w)
	p.mu.Unlock()
	if waiting {
		return ctx.Err()
	}
	switch g := <-w.ready; {
	case g.rejected:
		return p.rejection()
	case g.physical == nil:
		p.opened(notOpened)
	default:
		p.pass(g.physical)
	}
	return ctx.Err()
}

// pass gives a connection to the next caller, or keeps it for one if no caller waits.
func (p *pool) pass(c *physical) {
	p.mu.Lock()
	if w := p.queue.next(time.Now()); w != nil {
		w.ready <- grant{physical: c}
		p.mu.Unlock()
		return
	}
	if !p.closed {
		p.spare = append(p.spare, c)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.drop(c)
}

// drop closes a connection of a caller that has left, or that is too old.
func (p *pool) drop(c *physical) {
	defer p.free()
	_ = c.Close() // it is not needed any more, whatever the driver says
}

// close closes the spare connections. database/sql has closed those that it keeps.
func (p *pool) close() {
	p.mu.Lock()
	spare := p.spare
	p.spare, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range spare {
		p.drop(c)
	}
}

// expired reports whether c has been open for longer than SetConnMaxLifetime says.
func (p *pool) expired(c *physical) bool {
	lifetime := time.Duration(p.lifetime.Load())
	return lifetime > 0 && time.Since(c.since) > lifetime
}

// free takes in that a connection was closed.
func (p *pool) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	p.wake()
}

// opened takes in how the use of a right to open a connection has ended.
func (p *pool) opened(r opened) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opening.end(r)
	if r != isOpen {
		p.open--
	}
	p.wake()
}

// mayOpen takes the right to open a connection, or returns false. The lock is held.
func (p *pool) mayOpen() bool {
	if p.open >= p.limit || !p.opening.begin() {
		return false
	}
	p.open++
	return true
}

// wake gives rights to open a connection to the next callers. The lock is held.
func (p *pool) wake() {
	for p.queue.length > 0 && p.mayOpen() {
		p.queue.next(time.Now()).ready <- grant{}
	}
}

// put takes in that database/sql gets c back, and reports whether it may keep it. If not,
// another caller has the connection, or it is too old, and database/sql closes c next.
func (p *pool) put(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expired(c.physical) {
		return false
	}
	if p.queue.length > 0 {
		p.queue.next(time.Now()).ready <- grant{physical: c.part()}
		return false
	}
	p.idle = append(p.idle, c)
	return true
}

// part takes the connection from c, with what is prepared on it. The lock is held.
func (c *conn) part() *physical {
	taken := c.physical
	for s := range c.prepares {
		taken.left = append(taken.left, s)
	}
	c.physical, c.prepares = nil, nil
	return taken
}

// hold keeps callers from taking the connection of c while its statement s is being closed. It reports
// whether c has one, and whether c was idle: then the caller ends that with rest.
func (p *pool) hold(c *conn, s *stmt) (has, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(c.prepares, s)
	idle = p.forget(c)
	return c.physical != nil, idle
}

// rest takes in that c is idle again. If a caller waits by now, it gets the connection.
func (p *pool) rest(c *conn) {
	p.mu.Lock()
	if p.queue.length == 0 {
		p.idle = append(p.idle, c)
		p.mu.Unlock()
		return
	}
	taken := p.empty(c)
	p.mu.Unlock()
	p.pass(taken)
}

// take takes in that database/sql uses c again, and reports whether it still can.
func (p *pool) take(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(c)
	p.filled(c)
	return c.physical != nil && !p.expired(c.physical)
}

// forget removes c from the idle ones, and reports whether it was one. The lock is held.
func (p *pool) forget(c *conn) bool {
	i := slices.Index(p.idle, c)
	if i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	return i >= 0
}

// discard takes in that database/sql closes c. If database/sql keeps hollow conns, too, c closes in
// the place of one of them: its connection becomes a spare one. When the hollow one is closed, a spare
// connection is closed. So connections stay open while database/sql keeps a conn for each.
func (p *pool) discard(c *conn) error {
	p.mu.Lock()
	idle, connection := p.forget(c), c.physical
	c.physical = nil
	switch {
	case p.filled(c) && len(p.spare) > p.hollow:
		connection, p.spare = p.spare[0], p.spare[1:]
	case idle && len(p.spare) < p.hollow && !p.expired(connection):
		connection, p.spare = nil, append(p.spare, connection)
	}
	p.mu.Unlock()
	if connection == nil { // it has changed hands, or was closed
		return nil
	}
	defer p.free()
	return connection.Close()
}
