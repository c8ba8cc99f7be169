package main

import (
	"net"
	"sync"
	"time"

	"github.com/seed90641741/spillway/connlimit"
	"github.com/seed90641741/spillway/ratelimit"
)

// connectionRate is how many new connections per second the front "spillway-connections" lets
// in. It is a little more than the server can answer calls, so that it suffices where each call
// has a new connection, and so many TLS handshakes take a quarter of the processor. Half of it,
// and double, changes little but there.
const connectionRate = 800

// limitConnections returns a listener that resets the connections above connectionRate, before
// their TLS handshake. If reset is set, it resets all of them.
func limitConnections(l net.Listener, reset bool) (net.Listener, error) {
	c := connlimit.Config{Rate: ratelimit.Config{Rate: connectionRate, BurstSeconds: 0.1}}
	if reset {
		c.Rate = ratelimit.Config{Rate: 1. / 86400}
		l = &preceded{Listener: l}
	}
	return connlimit.NewListener(l, c)
}

// A preceded listener accepts a connection that nobody uses before all others.
type preceded struct {
	net.Listener

	once sync.Once
}

// Accept returns the next connection.
func (l *preceded) Accept() (c net.Conn, err error) {
	l.once.Do(func() { c, _ = net.Pipe() }) // nobody uses the other end
	if c != nil {
		return c, nil
	}
	return l.Listener.Accept()
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
