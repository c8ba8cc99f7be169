// Package earlytest compares the answers to a client with and without early rejection.
package earlytest

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A Client is a connection on which a client sends each piece when the server is ready for it, and
// which records the answers.
type Client struct {
	net.Conn // nil: Client implements all that a server needs

	Eager bool // sends each piece without waiting for the answer to the last

	mu      sync.Mutex
	pieces  [][]byte
	answers bytes.Buffer
	stopped chan struct{} // closed while reads must return at once
	closed  bool
}

// NewClient returns a Client that sends these pieces.
func NewClient(pieces ...string) *Client {
	c := &Client{stopped: make(chan struct{})}
	for _, p := range pieces {
		if p != "" {
			c.pieces = append(c.pieces, []byte(p))
		}
	}
	return c
}

// Read implements [net.Conn].
func (c *Client) Read(p []byte) (int, error) {
	c.mu.Lock()
	// net/http reads single bytes to notice when the client leaves. This client never leaves before
	// its answer; otherwise requests in the waiting queue would be given up.
	if wait := c.stopped; len(p) == 1 && (!c.Eager || len(c.pieces) == 0) {
		c.mu.Unlock()
		<-wait
		return 0, os.ErrDeadlineExceeded
	}
	defer c.mu.Unlock()
	if c.closed || len(c.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.pieces[0])
	if c.pieces[0] = c.pieces[0][n:]; len(c.pieces[0]) == 0 {
		c.pieces = c.pieces[1:]
	}
	return n, nil
}

// Write implements [net.Conn].
func (c *Client) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers.Write(p)
}

// SetReadDeadline implements [net.Conn].
func (c *Client) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop(!t.IsZero() && t.Before(time.Now()))
	return nil
}

// stop(true) makes reads return at once; stop(false) lets them wait again.
func (c *Client) stop(now bool) {
	select {
	case <-c.stopped:
		if !now && !c.closed {
			c.stopped = make(chan struct{})
		}
	default:
		if now {
			close(c.stopped)
		}
	}
}

// Close implements [net.Conn].
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.stop(true)
	return nil
}

// SetDeadline implements [net.Conn].
func (c *Client) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline implements [net.Conn].
func (*Client) SetWriteDeadline(time.Time) error { return nil }

// RemoteAddr implements [net.Conn].
func (*Client) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1} }

// LocalAddr implements [net.Conn].
func (*Client) LocalAddr() net.Addr { return &net.TCPAddr{Port: 80} }

// one is a listener for one connection.
type one struct {
	conn chan net.Conn
	done chan struct{}
}

func (l *one) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *one) Close() error   { return nil }
func (l *one) Addr() net.Addr { return &net.TCPAddr{Port: 80} }

// Listen returns a listener that accepts only the connection c.
func Listen(c *Client) net.Listener {
	l := &one{make(chan net.Conn, 1), make(chan struct{})}
	l.conn <- c
	return l
}
