package main

import (
	"net"
	"sync"
	"time"

	"github.com/seed90641741/spillway/inflight"
)

// A connectionLimiter accepts connections above a limit and resets them at once: no
// byte of them is read, and no TLS handshake begins.
type connectionLimiter struct {
	net.Listener

	open *inflight.Limiter
}

// limitConnections returns a listener with at most so many open connections.
func limitConnections(l net.Listener, limit int) (net.Listener, error) {
	open, err := inflight.New(inflight.Config{MaxRequests: 1})
	if err != nil {
		return nil, err
	}
	open.SetMaxRequests(uint32(limit))
	return &connectionLimiter{l, open}, nil
}

// Accept returns the next connection within the limit.
func (l *connectionLimiter) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.TryAcquire() {
			return &limitedConn{Conn: c, release: sync.OnceFunc(l.open.Release)}, nil
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, which keeps no socket in TIME_WAIT
		}
		_ = c.Close() // nothing is sent any more
	}
}

// A limitedConn counts until it is closed.
type limitedConn struct {
	net.Conn

	release func()
}

// Close closes the connection, and releases its place the first time.
func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// A slowListener takes its time for each connection.
type slowListener struct {
	net.Listener

	delay time.Duration
}

// Accept returns the next connection after the delay.
func (l *slowListener) Accept() (net.Conn, error) {
	<-time.After(l.delay)
	return l.Listener.Accept()
}
