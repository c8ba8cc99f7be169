package mongoproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/servers"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/netconn"
	"github.com/seed90641741/spillway/ratelimit"
)

// A conn is the connection of a client and its connection to the server. One goroutine serves
// it; others only read turn, and close it.
type conn struct {
	listener *listener
	socket   net.Conn // of the client; closing it counts
	address  netip.Addr
	ctx      context.Context //nolint:containedctx // of all that the connection waits for
	cancel   context.CancelFunc

	turn    atomic.Uint64 // even while it waits for the client, odd while it works for it
	streams atomic.Bool   // the client takes what comes, without asking
	reached atomic.Bool   // up and place are there, and do not change any more
	killed  atomic.Pointer[end]
	hold    sync.Mutex // of deadlines, between two commands
	looked  uint64     // the turn at the latest look of the watch

	settings *settings // of the command in flight
	down, up *wire.Link
	place    *servers.Server

	greeted  bool
	client   wire.Handshake
	who      identity
	unproven unproven
	opened   time.Time
	whole    atomic.Bool // its first message is there
	caller   ratelimit.Caller
	known    spillway.Call // of commands that are not told apart by their database
	database string        // of the latest command that named one
	command  wire.Command
	source   source
	scratch  *wire.Page // for the command in flight, if it is compressed
}

func (l *listener) newConn(nc net.Conn) *conn {
	c := &conn{listener: l, socket: nc, settings: l.settings.Load(), opened: time.Now()}
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		c.address = a.AddrPort().Addr().Unmap()
	}
	c.caller.Addr = c.address
	c.source.listener, c.source.address = l, c.address
	c.identify()
	c.ctx, c.cancel = context.WithCancel(context.WithValue(l.base, decisions.SourceKey{}, &c.source))
	return c
}

// kill closes the connection. It may be called by any goroutine.
func (c *conn) kill(why *end) {
	c.killed.CompareAndSwap(nil, why)
	c.cancel()
	_ = c.socket.Close() // an error says that it is closed
	if c.reached.Load() {
		_ = c.up.Conn.Close() // as above
	}
}

func (c *conn) serve() *end {
	err := c.run()
	if c.place != nil {
		c.listener.endpoints.Leave(c.address, c.place)
	}
	c.kill(&end{reasonOf(err), err})
	for _, l := range []*wire.Link{c.down, c.up} {
		if l != nil {
			l.Discard()
		}
	}
	return c.killed.Load()
}

func (c *conn) run() error {
	if err := c.open(); err != nil {
		return err
	}
	for {
		if err := c.one(); err != nil {
			return err
		}
		if c.leaving() {
			return &end{Drained, nil}
		}
		if err := c.await(); err != nil {
			return err
		}
	}
}

// leaving reports whether the connection is to be closed once it is idle: the listener ends,
// or its server was removed.
func (c *conn) leaving() bool {
	return c.listener.draining.Load() || c.reached.Load() && c.place.Gone()
}

// open reads the first message, and relays the connection if TLS is passed through.
func (c *conn) open() error {
	m := c.settings.config
	var deadline time.Time
	if m.HandshakeTimeout > 0 {
		deadline = c.opened.Add(m.HandshakeTimeout)
		if err := c.socket.SetDeadline(deadline); err != nil {
			return clientError(err)
		}
	}
	plain := c.socket
	if tcp, ok := netconn.Find[*net.TCPConn](plain); ok {
		plain = tcp // the kernel may copy from it
	}
	if t := c.settings.tls; t != nil {
		secure := tls.Server(plain, t)
		if err := secure.HandshakeContext(c.ctx); err != nil {
			return because(NotTLS, err)
		}
		plain = secure
	}
	c.down = wire.NewLink(plain, m.StallTimeout, clientError)
	c.down.Small, c.down.Until = true, deadline
	if err := c.down.Wait(); err != nil {
		return c.idleError(err)
	}
	c.turn.Add(1)
	if err := c.down.More(3); err != nil {
		return err
	}
	head := c.down.Peek()
	through := head[0] == 0x16 && head[1] == 3 && head[2] != 0
	if through && !m.TLSPassthrough {
		return endAs(NotTLS, "the client uses TLS, and the listener has none")
	}
	if !through {
		if _, err := c.next(); err != nil { // with all of it
			return err
		}
	}
	c.down.Small, c.down.Until = false, time.Time{}
	c.whole.Store(true)
	if err := c.socket.SetDeadline(time.Time{}); err != nil {
		return clientError(err)
	}
	if !through {
		return nil
	}
	if err := c.connect(nil); err != nil { // TLS is the client's
		return err
	}
	return c.relay()
}

// reach connects to a server, unless the connection has one.
func (c *conn) reach() error {
	if c.up != nil {
		return nil
	}
	return c.connect(c.settings.upstreamTLS)
}

func (c *conn) connect(secure *tls.Config) error {
	m := c.settings.config
	up, place, err := c.listener.endpoints.Connect(c.ctx, c.address, m.ConnectTimeout, secure)
	if err != nil {
		return because(Unreachable, err)
	}
	c.up, c.place = wire.NewLink(up, m.StallTimeout, serverError), place
	c.reached.Store(true)
	if c.ctx.Err() != nil { // it was killed before there was something to close
		_ = up.Close() // what it was for is over
	}
	return nil
}

// await waits for the next message. Meanwhile the connection may be closed.
func (c *conn) await() error {
	c.down.Give()
	if t := c.idle(); t > 0 && len(c.down.Peek()) == 0 {
		if err := c.down.Conn.SetReadDeadline(time.Now().Add(t)); err != nil {
			return clientError(err)
		}
		defer c.down.Conn.SetReadDeadline(time.Time{}) //nolint:errcheck // the next read says so
	}
	c.turn.Add(1)
	if c.leaving() && len(c.down.Peek()) == 0 {
		return &end{Drained, nil}
	}
	err := c.down.Wait()
	c.turn.Add(1)
	if err != nil {
		return c.idleError(err)
	}
	if c.leaving() { // whose deadline may have been meant for the wait
		c.hold.Lock()
		defer c.hold.Unlock()
		return clientError(c.down.Conn.SetReadDeadline(time.Time{}))
	}
	return nil
}

func (c *conn) idleError(err error) error {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return because(Left, err)
	case c.leaving():
		return because(Drained, err)
	case !c.whole.Load():
		return because(Stalled, err) // it never said anything
	case c.mustProve() && !c.unproven.until.IsZero():
		return because(Unauthenticated, errUnprovenLate)
	default:
		return because(Idle, err)
	}
}

// interrupt closes the connection if it waits for the client or streams answers to it. If a
// command is in flight, the connection closes by itself afterwards, because leaving reports
// true.
func (c *conn) interrupt() {
	if c.streams.Load() {
		c.kill(&end{Drained, nil})
		return
	}
	c.hold.Lock()
	defer c.hold.Unlock()
	if c.turn.Load()%2 == 0 {
		_ = c.socket.SetReadDeadline(time.Unix(1, 0)) // an error says that it is closed
	}
}

// one handles one message, whose first byte has arrived.
func (c *conn) one() error {
	if s := c.listener.settings.Load(); s != c.settings {
		c.settings = s
		c.identify()
		if err := c.bear(s.config.StallTimeout); err != nil {
			return because(Cut, err)
		}
	}
	defer c.unscratch()
	cmd := &c.command
	f, err := c.read(cmd)
	if err != nil {
		return err
	}
	if cmd.Kind == wire.Ordinary {
		return c.request(f, cmd)
	}
	return c.introduce(f, cmd)
}

// memoryLook is the interval at which a compressed message looks for memory.
const memoryLook = 10 * time.Millisecond

var errNoMemory = errors.New("no memory for the beginning of a compressed message")

// bear sets the stall timeout of both sides.
func (c *conn) bear(timeout time.Duration) error {
	err := c.down.Bear(timeout)
	if c.up != nil {
		err = errors.Join(err, c.up.Bear(timeout))
	}
	return err
}
