// Package netconn has what wrappers of connections have in common.
package netconn

import (
	"errors"
	"io"
	"net"
)

// Conn is embedded by a wrapper of a connection. It keeps what net/http and the kernel use of a
// connection beyond [net.Conn].
type Conn struct{ net.Conn }

// NetConn returns the connection underneath.
func (c Conn) NetConn() net.Conn { return c.Conn }

// ReadFrom implements [io.ReaderFrom]: the kernel can send a file by itself.
func (c Conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

// Find returns the first connection that is a T: c, or one underneath.
func Find[T any](c net.Conn) (found T, ok bool) {
	for {
		if found, ok = c.(T); ok {
			return found, true
		}
		x, wraps := c.(interface{ NetConn() net.Conn })
		if !wraps {
			return found, false
		}
		c = x.NetConn()
	}
}

// Reset closes a connection so that its client gets an error at once, and the kernel keeps no
// state of it.
func Reset(c net.Conn) {
	if t, ok := Find[*net.TCPConn](c); ok {
		_ = t.SetLinger(0) // without it the connection is closed all the same
	}
	_ = c.Close() // nothing is sent any more
}

// CloseWrite closes the sending side, if the connection can do that. The client then reads
// all of the answer before it finds the connection closed.
func (c Conn) CloseWrite() error {
	if x, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return x.CloseWrite()
	}
	return errors.ErrUnsupported
}
