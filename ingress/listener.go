package ingress

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/ratelimit"
)

// ListenerConfig configures a [Listener]. The zero ListenerConfig lets all in.
type ListenerConfig struct {
	// Rate bounds the connections per second. Connections that find no token wait if it
	// has a QueueDepth, which keeps handshakes from coming faster than the server
	// can make them; the others are closed without a word.
	Rate ratelimit.Config
	// MaxOpen is how many connections may be open at once, including connections that
	// wait. Zero and negative mean no limit.
	MaxOpen int
	// Near, if not nil, is asked about each connection that comes when three quarters of
	// MaxOpen are open: whether it is let in. open counts it, and exceeds most, which is
	// MaxOpen, when all are. It may close other connections to make room, and must be
	// quick, as no other connection is accepted meanwhile. Without it, connections are
	// refused when all are open.
	Near func(c net.Conn, open, most int) bool
}

// A Listener lets connections in from another listener. A connection that it
// refuses is reset: an answer would cost a handshake, and a client that hears
// nothing tries elsewhere. Make one with [NewListener].
type Listener struct {
	from    net.Listener
	limiter *ratelimit.Limiter
	maxOpen atomic.Int64
	near    atomic.Pointer[func(net.Conn, int, int) bool]
	open    atomic.Int64
	refused atomic.Uint64
	ready   chan net.Conn
	failed  chan error // the end of the other listener, at most once
	closing chan struct{}
	close   func() error
	running sync.WaitGroup
}

// NewListener returns a Listener on l, or an error that names the field that is
// wrong. It starts a goroutine that accepts, which [Listener.Close] ends.
func NewListener(l net.Listener, c ListenerConfig) (*Listener, error) {
	limiter, err := ratelimit.New(c.Rate)
	if err != nil {
		return nil, fmt.Errorf("ingress: Rate: %w", err)
	}
	x := &Listener{
		from: l, limiter: limiter,
		ready: make(chan net.Conn), failed: make(chan error, 1), closing: make(chan struct{}),
	}
	x.bound(c)
	x.close = sync.OnceValue(func() error {
		close(x.closing)
		return l.Close()
	})
	x.running.Go(x.accept)
	return x, nil
}

// Update changes the configuration, or returns an error that names the field
// that is wrong and changes nothing. Connections that are open stay so.
func (l *Listener) Update(c ListenerConfig) error {
	if err := l.limiter.Update(c.Rate); err != nil {
		return fmt.Errorf("ingress: Rate: %w", err)
	}
	l.bound(c)
	return nil
}

func (l *Listener) bound(c ListenerConfig) {
	l.near.Store(&c.Near)
	l.maxOpen.Store(int64(c.MaxOpen))
}

// Accept returns the next connection that is let in.
func (l *Listener) Accept() (net.Conn, error) {
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
	l.running.Wait()
	return err
}

// ListenerStats says how a [Listener] stands.
type ListenerStats struct {
	Rate ratelimit.Stats
	Open int
	// RefusedTotal is how many connections were reset, for their rate or because
	// too many were open.
	RefusedTotal uint64
}

// Stats returns how l stands at the time now.
func (l *Listener) Stats(now time.Time) ListenerStats {
	return ListenerStats{l.limiter.Stats(now), int(l.open.Load()), l.refused.Load()}
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
		l.failed <- err
		return
	}
}

// retryAccept is how long to wait when the process has run out of files.
const retryAccept = 50 * time.Millisecond

// temporary reports whether err will pass, as running out of files does.
func temporary(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err)
	return ok && t.Temporary()
}

// admit decides on a new connection, and has it wait if need be.
func (l *Listener) admit(c net.Conn) {
	x := &conn{Conn: c, listener: l}
	if !l.room(c, l.open.Add(1)) {
		x.refuse()
		return
	}
	if l.limiter.Exempt(ratelimit.Caller{Addr: address(c)}) {
		l.deliver(x)
		return
	}
	r, err := l.limiter.Reserve(time.Now())
	switch {
	case err != nil:
		x.refuse()
	case r.Wait == 0:
		l.deliver(x)
	default:
		l.running.Go(func() { l.wait(x, &r) })
	}
}

// room reports whether a connection may be open as the n-th.
func (l *Listener) room(c net.Conn, n int64) bool {
	most := l.maxOpen.Load()
	if near := *l.near.Load(); near != nil && most > 0 && n > most-most/4 {
		return near(c, int(n), int(most))
	}
	return most <= 0 || n <= most
}

func (l *Listener) wait(c *conn, r *ratelimit.Reservation) {
	t := time.NewTimer(r.Wait)
	defer t.Stop()
	select {
	case <-t.C:
		r.End(time.Now())
		l.deliver(c)
	case <-l.closing:
		r.End(time.Now())
		_ = c.Close()
	}
}

func (l *Listener) deliver(c *conn) {
	select {
	case l.ready <- c:
	case <-l.closing:
		_ = c.Close()
	}
}

func address(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// conn is an open connection that counts.
type conn struct {
	net.Conn
	listener *Listener
	closed   atomic.Bool
}

// Close closes the connection. It counts once.
func (c *conn) Close() error {
	if !c.closed.Swap(true) {
		c.listener.open.Add(-1)
	}
	return c.Conn.Close()
}

// NetConn returns the connection underneath.
func (c *conn) NetConn() net.Conn { return c.Conn }

// ReadFrom implements [io.ReaderFrom]: the kernel can send a file by itself.
func (c *conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

// CloseWrite ends what is sent, where the connection can: the client then reads to
// the end before it learns that the connection is closed.
func (c *conn) CloseWrite() error {
	if x, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return x.CloseWrite()
	}
	return errors.ErrUnsupported
}

// refuse resets the connection: the client learns at once, and nothing of it
// stays in the kernel.
func (c *conn) refuse() {
	c.listener.refused.Add(1)
	if t, ok := c.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
