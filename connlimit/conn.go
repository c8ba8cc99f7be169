package connlimit

import (
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/seed90641741/spillway/internal/netconn"
)

func address(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// conn is a connection that counts as open until it is closed, once it has entered.
type conn struct {
	netconn.Conn

	listener *Listener
	place    place // among the open ones
	closed   atomic.Bool

	free    atomic.Int64 // bytes of the head that is being read
	charged atomic.Bool  // that head is longer
	long    int          // by so much; guarded by listener.heads, as is
	account *account     // for which that counts
}

// Close closes the connection. It counts once.
func (c *conn) Close() error {
	if !c.closed.Swap(true) {
		c.listener.leave(c)
		c.end(true)
	}
	return c.Conn.Close()
}

// reject resets the connection for a limit.
func (c *conn) reject(limit Limit) { c.listener.reject(c, limit) }

// reject resets a connection, whether it has entered or not.
func (l *Listener) reject(c net.Conn, limit Limit) {
	l.rejected.Add(1)
	if observe := l.config.Load().Rejected; observe != nil {
		observe(c.RemoteAddr(), limit)
	}
	netconn.Reset(c)
}
