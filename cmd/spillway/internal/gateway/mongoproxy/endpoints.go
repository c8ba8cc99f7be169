package mongoproxy

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// avoidFor is how long a server gets no new clients after it failed or was overloaded, if
// there are other servers.
const avoidFor = time.Second

// An endpoint is a server.
type endpoint struct {
	address string
	id      [12]byte     // by which drivers behind a load balancer know it
	trouble atomic.Int64 // when it failed or was overloaded last, in Unix nanoseconds
	gone    atomic.Bool  // from the configuration
	conns   int          // under the mutex of its endpoints
}

// endpoints are the servers behind a listener, and the assignment of clients to them.
type endpoints struct {
	mu      sync.Mutex
	all     []*endpoint
	clients map[netip.Addr]*placed // those with connections
}

// placed is the server of a client, with the number of its connections.
type placed struct {
	at    *endpoint
	conns int
}

func newEndpoints() *endpoints { return &endpoints{clients: make(map[netip.Addr]*placed)} }

// set changes the list of servers. Servers in both lists are kept; removed servers are marked.
func (e *endpoints) set(addresses []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.all
	e.all = nil
	for _, a := range addresses {
		if i := slices.IndexFunc(old, func(x *endpoint) bool { return x.address == a }); i >= 0 {
			e.all = append(e.all, old[i])
			continue
		}
		x := &endpoint{address: a}
		_, _ = rand.Read(x.id[:]) // never fails
		e.all = append(e.all, x)
	}
	for _, x := range old {
		x.gone.Store(!slices.Contains(e.all, x))
	}
}

// enter picks the server for a connection of a client, and counts it there at once, before it
// is made, so that concurrent calls see it. It skips the servers in tried, and returns nil if
// no other is left.
func (e *endpoints) enter(client netip.Addr, now time.Time, tried []*endpoint) (best *endpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.clients[client]
	at := now.UnixNano()
	since := at - int64(avoidFor)
	rank := func(x *endpoint) int {
		switch {
		case p != nil && p.at == x:
			return -1
		case x.trouble.Load() > since && x.trouble.Load() <= at: // later is before the clock was set back
			return x.conns + 1<<30
		}
		return x.conns
	}
	for _, x := range e.all {
		if !slices.Contains(tried, x) && (best == nil || rank(x) < rank(best)) {
			best = x
		}
	}
	if best == nil {
		return nil
	}
	if p == nil {
		p = new(placed)
		e.clients[client] = p
	}
	best.conns++
	p.at = best
	p.conns++
	return best
}

// leave must be called when a connection that has entered ends.
func (e *endpoints) leave(client netip.Addr, x *endpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x.conns--
	p := e.clients[client]
	if p.conns--; p.conns == 0 {
		delete(e.clients, client)
	}
}

// connect connects to the first server that can be reached.
func (e *endpoints) connect(ctx context.Context, client netip.Addr, timeout time.Duration, secure *tls.Config) (net.Conn, *endpoint, error) {
	errs := []error{errors.New("no server could be reached")}
	var tried []*endpoint
	for {
		x := e.enter(client, time.Now(), tried)
		if x == nil {
			return nil, nil, errors.Join(errs...)
		}
		c, err := dial(ctx, x.address, timeout, secure)
		if err == nil {
			return c, x, nil
		}
		e.leave(client, x)
		if ctx.Err() != nil {
			return nil, nil, err // the client has left, which is no trouble
		}
		x.trouble.Store(time.Now().UnixNano())
		tried, errs = append(tried, x), append(errs, err)
	}
}

func dial(ctx context.Context, address string, timeout time.Duration, secure *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil || secure == nil {
		return c, err
	}
	if secure.ServerName == "" {
		secure = secure.Clone()
		secure.ServerName, _, _ = net.SplitHostPort(address) // it was dialled
	}
	t := tls.Client(c, secure)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = c.Close() // the error that matters is the other one
		return nil, err
	}
	return t, nil
}
