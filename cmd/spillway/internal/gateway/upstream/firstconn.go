package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/netconn"
)

// A firstConn is a connection of HTTP/1.1 to an endpoint. net/http removes the field Connection from an answer
// if it has the option close, and the names of the other hop-by-hop fields with it. So the connection
// reads the heads of answers as well, and keeps what their Connection says.
type firstConn struct {
	netconn.Conn

	of      *keeping     // of its endpoint
	moved   atomic.Int64 // when the last byte came or went, since epoch
	rejects atomic.Bool  // it carries no more requests

	mu      sync.Mutex
	reads   bool     // the lines of a head are read
	first   bool     // the next line is that of the status
	interim bool     // the head is that of an answer with a status of 1xx
	listed  bool     // the last line was of Connection
	line    []byte   // the beginning of a line whose end has not come
	options []string // values of Connection
}

// firstConns returns dial with connections that keep what Connection says.
func firstConns(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		first := &firstConn{Conn: netconn.Conn{Conn: c}, of: new(keeping)}
		if x, ok := ctx.Value(placeKey{}).(*place); ok {
			first.of = x.keeping
		}
		return first, nil
	}
}

// firstOverTLS returns a dial function for HTTP/1.1 over TLS.
func firstOverTLS(d *net.Dialer, secured *tls.Config) DialFunc {
	secured = secured.Clone()
	secured.NextProtos = nil
	return (&tls.Dialer{NetDialer: d, Config: secured}).DialContext
}

// begin says that the next answer begins. It is called before its request is written.
func (c *firstConn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads, c.first, c.interim, c.listed, c.line, c.options = true, true, false, false, c.line[:0], nil
}

// restore gives an answer the field Connection back.
func (c *firstConn) restore(resp *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.options) > 0 && resp.Header["Connection"] == nil {
		resp.Header["Connection"] = c.options
	}
}

// Read implements [net.Conn].
func (c *firstConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	now := sinceEpoch()
	last := c.moved.Load()
	if n > 0 {
		c.moved.Store(now)
		c.scan(b[:n])
	}
	if err != nil && n == 0 && last > 0 && !errors.Is(err, net.ErrClosed) {
		c.of.closed(now, time.Duration(now-last))
	}
	return n, err
}

// Write implements [net.Conn]. If nothing of a request could be written, net/http sends it over another connection.
func (c *firstConn) Write(b []byte) (int, error) {
	if c.rejects.Load() {
		return 0, errLongIdle
	}
	c.moved.Store(sinceEpoch())
	return c.Conn.Write(b)
}

// ReadFrom implements [io.ReaderFrom].
func (c *firstConn) ReadFrom(r io.Reader) (int64, error) {
	if c.rejects.Load() {
		return 0, errLongIdle
	}
	c.moved.Store(sinceEpoch())
	return c.Conn.ReadFrom(r)
}

// scan reads lines of a head. net/http bounds the length of the head.
func (c *firstConn) scan(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.reads && len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		if !whole {
			c.line = append(c.line, line...)
			return
		}
		if len(c.line) > 0 {
			line = append(c.line, line...)
			c.line = c.line[:0]
		}
		c.take(bytes.TrimRight(line, "\r"))
		b = rest
	}
}

// take takes a line without its end.
func (c *firstConn) take(line []byte) {
	switch {
	case c.first:
		_, status, _ := bytes.Cut(line, []byte{' '})
		status = bytes.TrimLeft(status, " ")
		c.first, c.interim = false, len(status) > 0 && status[0] == '1' && !bytes.HasPrefix(status, []byte("101"))
	case len(line) == 0: // the end of the head: another one follows that of an interim answer
		c.reads, c.first, c.listed = c.interim, true, false
		if c.interim {
			c.options = nil
		}
	case line[0] == ' ' || line[0] == '\t': // a line that continues the last one: RFC 9112, section 5.2
		if c.listed {
			c.options[len(c.options)-1] += " " + string(bytes.TrimSpace(line))
		}
	default:
		name, value, _ := bytes.Cut(line, []byte{':'})
		if c.listed = bytes.EqualFold(name, []byte("Connection")); c.listed {
			c.options = append(c.options, string(bytes.TrimSpace(value)))
		}
	}
}
