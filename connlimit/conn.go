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

// conn is a connection of a Listener. It counts as open from Listener.enter until it is closed.
type conn struct {
	netconn.Conn

	listener *Listener
	place    place // its entry in Listener.open
	closed   atomic.Bool

	free    atomic.Int64 // bytes of the current head that are still free; noHead: no head
	charged atomic.Bool  // whether the current head is longer than its free part
	long    int          // charged bytes of the current head; guarded by listener.heads.mu
	account *account     // the account that they are charged to; guarded by listener.heads.mu
}

// Close closes the connection. Only the first call counts.
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
