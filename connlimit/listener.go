package connlimit

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/netconn"
	"github.com/seed90641741/spillway/ratelimit"
)

// Config configures a [Listener]. The zero Config accepts all connections.
type Config struct {
	// Rate limits the connections per second. With a QueueDepth, connections that find no
	// token wait, so that handshakes come no faster than the server can make them. When the
	// queue is full, a new connection replaces one of the address that has most in the
	// queue, or is reset. Without a queue, tokens go to the connections that come first.
	Rate ratelimit.Config
	// MaxOpen limits the connections that are open at once, including connections that
	// wait. When all are open, a new connection replaces one of the address that has most,
	// if that has at least double the number that the new client then has; otherwise the new
	// one is reset. So no address can keep all others out, and clients behind one address
	// (a load balancer) never close each other's connections. All addresses of an IPv6 /64
	// count as one. Zero and negative mean no limit.
	MaxOpen int
	// Work, if not nil, limits the connections per second while handshakes keep the processors from
	// serving requests: see Overload in the package comment. It returns how many requests have
	// begun since the start, and the share of the processors' time that the process uses. It is
	// called once in 100 ms at most, and must be quick. The method Work of ingress.Server is one.
	Work func(now time.Time) (begun uint64, cpu float64)
	// Near, if not nil, decides whether to accept a new connection when three quarters of MaxOpen
	// are open. open is the number of open connections with the new one, and most is MaxOpen, so
	// open exceeds most when MaxOpen were open. Near may close other connections. It must be quick,
	// because no connection is accepted meanwhile. If it returns false while open is more than
	// most, the rule of MaxOpen applies.
	Near func(c net.Conn, open, most int) bool
	// Rejected, if not nil, is called with the address of each connection that is reset, and the
	// limit that it is reset for. It may be called by several goroutines at once. It must be quick,
	// because in most cases no connection is accepted meanwhile.
	Rejected func(client net.Addr, limit Limit)
}

// Limit is a limit of a [Listener].
type Limit uint8

// The limits of a Listener, by their fields in [Config].
const (
	// LimitRate is Rate.
	LimitRate Limit = iota
	// LimitOpen is MaxOpen, with Near.
	LimitOpen
	// LimitOverload is Work.
	LimitOverload
	// LimitHeads is the limit of long heads, which the package comment describes.
	LimitHeads
)

// A Listener accepts connections from another listener, within limits. A connection that
// it rejects is reset: an answer would cost a handshake, and a client that gets no answer
// tries elsewhere. Make one with [NewListener]. It is safe for concurrent use.
type Listener struct {
	from     net.Listener
	limiter  *ratelimit.Limiter
	config   atomic.Pointer[Config]
	rejected atomic.Uint64
	ready    chan net.Conn
	failed   chan error    // the error that ended the other listener, at most one
	ended    chan struct{} // closed when the other listener has ended, but l is not closed
	closing  chan struct{}
	close    func() error
	begin    sync.Once // starts the goroutine that accepts
	running  sync.WaitGroup
	waiting  sync.WaitGroup // connections in the queue
	overload overload       // used by the goroutine that accepts
	heads    heads

	mu   sync.Mutex
	n    int     // connections that are open
	open holders // the open connections
	line holders // the connections in the queue
}

// NewListener returns a Listener on l, or an error that names the field that is wrong. The first
// Accept starts a goroutine that accepts connections from l, and [Listener.Close] ends it. Before
// that, the Listener takes no connection from l.
func NewListener(l net.Listener, c Config) (*Listener, error) {
	limiter, err := ratelimit.New(c.Rate)
	if err != nil {
		return nil, invalid.In("connlimit", "Rate", err)
	}
	x := &Listener{
		from: l, limiter: limiter,
		overload: newOverload(),
		ready:    make(chan net.Conn), failed: make(chan error, 1), ended: make(chan struct{}), closing: make(chan struct{}),
	}
	x.config.Store(&c)
	x.close = sync.OnceValue(func() error {
		close(x.closing)
		return l.Close()
	})
	return x, nil
}

// Update changes the configuration, or returns an error that names the field that is wrong and
// changes nothing. Open connections stay open.
func (l *Listener) Update(c Config) error {
	if err := l.limiter.Update(c.Rate); err != nil {
		return invalid.In("connlimit", "Rate", err)
	}
	l.config.Store(&c)
	return nil
}

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	l.begin.Do(func() { l.running.Go(l.accept) })
	select {
	case c := <-l.ready:
		return c, nil
	case err := <-l.failed:
		l.failed <- err
		return nil, err
	case <-l.closing:
		return nil, net.ErrClosed
	}
}

// Addr returns the address of the other listener.
func (l *Listener) Addr() net.Addr { return l.from.Addr() }

// Close closes the other listener and all connections that wait, and waits for
// the goroutine that accepts.
func (l *Listener) Close() error {
	err := l.close()
	l.begin.Do(func() {}) // an Accept that comes later starts nothing
	l.running.Wait()
	return err
}

// Stats is the state of a [Listener].
type Stats struct {
	Rate ratelimit.Stats
	Open int
	// RejectedTotal is the number of connections that a limit reset since the start, including
	// connections that a new one replaced.
	RejectedTotal uint64
}

// Stats returns the state of l at the time now.
func (l *Listener) Stats(now time.Time) Stats {
	l.mu.Lock()
	n := l.n
	l.mu.Unlock()
	return Stats{l.limiter.Stats(now), n, l.rejected.Load()}
}

func (l *Listener) accept() {
	for {
		c, err := l.from.Accept()
		if err == nil {
			l.admit(c)
			continue
		}
		if temporary(err) {
			select {
			case <-time.After(retryAccept):
				continue
			case <-l.closing:
			}
		}
		l.end()
		l.failed <- err
		return
	}
}

// end empties the queue when the other listener has ended. It accepts the connections that wait, as
// no more will come, or closes them if l was closed.
func (l *Listener) end() {
	select {
	case <-l.closing:
	default:
		close(l.ended)
	}
	l.waiting.Wait()
}

// retryAccept is the wait before the next Accept when the process has too many open files.
const retryAccept = 50 * time.Millisecond

// temporary reports whether a later Accept may succeed, such as when the process has too many open
// files.
func temporary(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err)
	return ok && t.Temporary()
}

// admit accepts a new connection, lets it wait, or rejects it.
func (l *Listener) admit(c net.Conn) {
	x, now, from := &conn{Conn: netconn.Conn{Conn: c}, listener: l}, time.Now(), ratelimit.Caller{Addr: address(c)}
	x.free.Store(noHead)
	exempt := l.limiter.Exempt(from)
	if !exempt && !l.paced(now, x, from) {
		return
	}
	if !l.enter(x) {
		x.reject(LimitOpen)
		return
	}
	if exempt {
		l.deliver(x)
		return
	}
	r, err := l.limiter.Reserve(now)
	switch {
	case err != nil:
		if !l.replaceWaiting(x) {
			x.reject(LimitRate)
		}
	case r.Wait == 0:
		l.deliver(x)
	default:
		p := l.enqueue(x)
		l.waiting.Go(func() { l.wait(p, &r) })
	}
}

// paced reports whether the rate and the limit of an overload allow a connection now. If not, it
// resets the connection. It runs before the connection counts as open. Otherwise the connection
// could replace an open one and then be reset itself.
func (l *Listener) paced(now time.Time, c *conn, from ratelimit.Caller) bool {
	if work := l.config.Load().Work; work != nil && !l.overload.admit(now, from.Addr, work) {
		l.reject(c.NetConn(), LimitOverload)
		return false
	}
	l.mu.Lock()
	replaces := l.line.excess(l.line.count(c)) != nil
	l.mu.Unlock()
	if !replaces && l.limiter.Reject(now, from) != nil {
		l.reject(c.NetConn(), LimitRate)
		return false
	}
	return true
}

// enter counts a connection as open, and reports whether MaxOpen allows it.
func (l *Listener) enter(c *conn) bool {
	l.mu.Lock()
	l.open.add(&c.place, c)
	l.n++
	n := l.n
	l.mu.Unlock()
	config := l.config.Load()
	most := config.MaxOpen
	if config.Near != nil && most > 0 && n > most-most/4 {
		return config.Near(c.NetConn(), n, most) || n > most && l.replaceOpen(c)
	}
	return most <= 0 || n <= most || l.replaceOpen(c)
}

// leave counts a connection as closed.
func (l *Listener) leave(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open.remove(&c.place)
	l.n--
}

// replaceOpen closes a connection of the address that has most, for c, which counts as
// open already. It reports whether it has closed one.
func (l *Listener) replaceOpen(c *conn) bool {
	l.mu.Lock()
	p := l.open.excess(l.open.count(c) - 1)
	l.mu.Unlock()
	if p == nil {
		return false
	}
	p.conn.reject(LimitOpen)
	return true
}

// enqueue gives c a place in the queue.
func (l *Listener) enqueue(c *conn) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := new(place)
	l.line.add(p, c)
	return p
}

// replaceWaiting gives c the place in the queue of a connection of the address that has
// most of them, which is reset. It reports whether there is such a connection.
func (l *Listener) replaceWaiting(c *conn) bool {
	l.mu.Lock()
	p := l.line.excess(l.line.count(c))
	var old *conn
	if p != nil {
		old = p.conn
		l.line.remove(p)
		l.line.add(p, c)
	}
	l.mu.Unlock()
	if old == nil {
		return false
	}
	old.reject(LimitRate)
	return true
}

// dequeue frees a place in the queue, and returns its last connection: another one may have
// replaced the first.
func (l *Listener) dequeue(p *place) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line.remove(p)
	return p.conn
}

func (l *Listener) wait(p *place, r *ratelimit.Reservation) {
	t := time.NewTimer(r.Wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.ended:
	case <-l.closing:
		r.End(time.Now())
		_ = l.dequeue(p).Close()
		return
	}
	r.End(time.Now())
	if c := l.dequeue(p); !c.closed.Load() { // it may have been replaced as an open one
		l.deliver(c)
	}
}

func (l *Listener) deliver(c *conn) {
	select {
	case l.ready <- c:
	case <-l.closing:
		_ = c.Close()
	}
}
