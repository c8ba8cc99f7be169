package clients

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/admin/resets"
	"github.com/seed90641741/spillway/internal/netconn"
)

// A Listener accepts connections with a timeout for each write. The timeouts of net/http cover
// the whole response and would cut off long responses.
type Listener struct {
	net.Listener

	Timeout time.Duration         // negative: none
	Peers   func() []netip.Prefix // nobody else may connect; none: all may
	Resets  *resets.Log
}

// Accept implements [net.Listener].
func (p *Listener) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		switch {
		case err != nil:
			return nil, err
		case !isPeer(p.Peers(), c.RemoteAddr()):
			p.Resets.NoPeer(c)
		default:
			return &conn{Conn: c, timeout: p.Timeout}, nil
		}
	}
}

func isPeer(networks []netip.Prefix, a net.Addr) bool {
	if len(networks) == 0 {
		return true
	}
	tcp, ok := a.(*net.TCPAddr)
	return ok && slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(tcp.AddrPort().Addr().Unmap()) })
}

// conn is a connection with a timeout for each Write. It notes when bytes arrive and leave.
type conn struct {
	net.Conn
	timeout time.Duration // negative: none
	set     atomic.Int64  // when the deadline was set; 0: it is not
	told    atomic.Bool   // others have set one, and know why

	lengths atomic.Bool // a Content-Length may have come, without TLS; see scan
	matched int         // of its name; only the reader uses it
	second  atomic.Bool // it has begun as one of HTTP/2 does without TLS
	greeted int         // bytes of that beginning, negative if it is another one; only the reader uses it

	writers atomic.Int32 // writes under way

	heard  atomic.Int64 // when the last byte arrived; 0: none did
	wrote  atomic.Int64 // when the last write began; 0: none did
	began  atomic.Int64 // when the first byte after it arrived; 0: none ever did
	mu     sync.Mutex
	ending bool // it is to be closed, unless there is something to read
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.heard.Load() == 0 && c.greeted == 0 && string(b[:min(n, 2)]) == "\r\n" {
		// One empty line before the first request: RFC 9112, section 2.2. Later it could be a part of a body.
		if c.greeted, n = -1, copy(b, b[2:n]); n == 0 {
			n, err = c.Conn.Read(b)
		}
	}
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.lastLook() {
		n, err = c.Conn.Read(b)
	}
	if n > 0 {
		c.arrived()
		c.greet(b[:n])
		c.scan(b[:n])
	}
	return n, err
}

// greeting is how HTTP/2 begins without TLS (RFC 9113, section 3.4), and no request of HTTP/1.1.
const greeting = "PRI * HTTP/2.0\r\n\r\n"

// greet finds out whether a connection begins with the greeting.
func (c *conn) greet(b []byte) {
	if c.greeted < 0 || c.greeted == len(greeting) {
		return
	}
	n := min(len(b), len(greeting)-c.greeted)
	if string(b[:n]) != greeting[c.greeted:c.greeted+n] {
		c.greeted = -1
		return
	}
	c.greeted += n
	c.second.Store(c.greeted == len(greeting))
}

// lengthField is how a line with a Content-Length begins.
const lengthField = "\ncontent-length"

// scan looks for the name of Content-Length at the beginning of a line, which net/http hides where
// there is a Transfer-Encoding, too. It may also find one in a body.
func (c *conn) scan(b []byte) {
	if c.lengths.Load() {
		return
	}
	for i := 0; i < len(b); i++ {
		if c.matched == 0 {
			line := bytes.IndexByte(b[i:], lengthField[0])
			if line < 0 {
				return
			}
			i, c.matched = i+line, 1
			continue
		}
		switch {
		case b[i]|0x20 == lengthField[c.matched]:
			c.matched++
		case b[i] == lengthField[0]:
			c.matched = 1
		default:
			c.matched = 0
		}
		if c.matched == len(lengthField) {
			c.lengths.Store(true)
			return
		}
	}
}

// arrived notes that bytes have arrived. If the connection was to be closed, it is not.
func (c *conn) arrived() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := monotonic()
	if c.heard.Load() <= c.wrote.Load() {
		c.began.Store(now)
	}
	c.heard.Store(now)
	if c.ending {
		c.ending = false
		_ = c.Conn.SetReadDeadline(time.Time{}) // net/http sets one for the head
	}
}

// finish makes reads fail, if there is nothing to read, unless bytes have arrived since heard.
func (c *conn) finish(heard int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard.Load() == heard {
		c.ending = true
		_ = c.Conn.SetReadDeadline(past) // net/http closes it
	}
}

// lastLook allows one more read of what has arrived, before the connection is closed. A read
// after its deadline returns nothing, even if there is something.
func (c *conn) lastLook() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending && c.Conn.SetReadDeadline(time.Now().Add(time.Millisecond)) == nil
}

func (c *conn) Write(b []byte) (int, error) {
	c.writers.Add(1)
	defer c.writers.Add(-1)
	now := monotonic()
	c.wrote.Store(now)
	if c.timeout > 0 && !c.told.Load() {
		if set := c.set.Load(); set == 0 || time.Duration(now-set) > c.timeout/8 {
			c.set.Store(now)
			if err := c.Conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
				return 0, err
			}
		}
	}
	return c.Conn.Write(b)
}

// SetWriteDeadline implements [net.Conn].
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.told.Store(!t.IsZero())
	c.set.Store(0)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// NetConn returns the connection underneath.
func (c *conn) NetConn() net.Conn { return c.Conn }

// CloseWrite closes the sending side, so that the client reads the whole answer before it
// notices the close.
func (c *conn) CloseWrite() error { return netconn.Conn{Conn: c.Conn}.CloseWrite() }

// upgraded is a connection that was taken over.
type upgraded struct {
	net.Conn
	early    *bufio.Reader // what came with the request: net/http has read it already
	exchange *Exchange
}

func (u *upgraded) Read(p []byte) (int, error) {
	if n := u.early.Buffered(); n > 0 {
		return u.early.Read(p[:min(len(p), n)])
	}
	n, err := u.Conn.Read(p)
	u.exchange.moved.Store(monotonic())
	return n, err
}

func (u *upgraded) Write(p []byte) (int, error) {
	n, err := u.Conn.Write(p)
	u.exchange.moved.Store(monotonic())
	return n, err
}

// CloseWrite closes the sending side.
func (u *upgraded) CloseWrite() error { return netconn.Conn{Conn: u.Conn}.CloseWrite() }
