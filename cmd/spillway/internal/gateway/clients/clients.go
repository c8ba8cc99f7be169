// Package clients watches how clients take part in their requests. An [Exchange] is one
// request and its answer: it knows when its client is waited for, for how long in excess of
// the bytes that moved, and ends when that exceeds its [Bounds]. A [Set] has the connections of
// a listener. Near its caps, exchanges and connections that wait for their clients are evicted,
// so that no client uses up what others need. A [Pool] is the same for the places of a cluster.
package clients

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/claims"
)

// A Set has the connections of a listener and their exchanges. It enforces two caps, on
// connections and on requests. Below three quarters of a cap it only counts. Above, a
// connection or an address that has its share gets more only if one of its exchanges
// is evicted, and at the cap any newcomer does only if another exchange is. An exchange can
// be evicted while it waits for its client. The one that has waited longest goes first,
// weighted by the number that its address holds: silent clients cannot block active ones.
type Set struct {
	costs atomic.Pointer[costs] // nil: connections cost nothing

	draining atomic.Int64 // since when; 0: it does not

	mu        sync.Mutex
	conns     map[net.Conn]*clientConn
	addresses map[netip.Prefix]*address
	requests  int
	most      int // requests; not above zero: no limit

	idleTimeout time.Duration // of connections; not above zero: no limit

	rejected uint64
	evicted  atomic.Uint64
}

// An address is a client address; for IPv6 a /64 network, as one host may have all of it.
type address struct {
	prefix   netip.Prefix
	clients  map[*clientConn]struct{}
	requests int
}

// A clientConn is one client connection.
type clientConn struct {
	owner     *Set
	conn      net.Conn
	wire      *conn        // below TLS
	prefix    netip.Prefix // of its address
	address   *address
	idle      int64 // since when it is idle, or sends the head of a request
	announced int64 // since when its end is announced; 0: it is not
	due       bool  // the last look found it idle for too long
	exchanges []*Exchange
	second    bool // it is one of HTTP/2, as far as is known
	asked     bool // it has had an exchange
	closing   bool
	bill      bill

	announcing chan struct{} // has a place for one that sends GOAWAY
}

// firstRequest is how long a new connection counts as busy: until its first request can
// arrive, after the round trips of a handshake. Otherwise each new client would lose its
// connection to the next one while all others are busy.
const firstRequest = 250 * time.Millisecond

// The shares of a cap: the part that is scarce, and how much of a scarce cap one address or
// one connection may have.
const (
	scarceShare     = 4  // the last quarter
	addressShare    = 4  // a quarter for each address
	connectionShare = 16 // a sixteenth for each connection: on one of HTTP/2 there can be 250
)

// scarce reports whether one more than n is in the last quarter of a cap.
func scarce(n, most int) bool { return most > 0 && n >= most-most/scarceShare }

// share returns the share of a scarce cap that one client may have.
func share(most, of int) int { return max(1, most/of) }

// New returns a Set with a maximum number of requests and an idle timeout for connections;
// zero or less is no limit.
func New(most int, idleTimeout time.Duration) *Set {
	return &Set{most: most, idleTimeout: idleTimeout, conns: make(map[net.Conn]*clientConn), addresses: make(map[netip.Prefix]*address)}
}

// Limit changes the maximum number of requests.
func (s *Set) Limit(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = most
}

// prefixOf returns the prefix of an address that identifies a client.
func prefixOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	return claims.Network(tcp.AddrPort().Addr())
}

// clientKey is the context key of the client of a connection.
type clientKey struct{}

// Open is an [http.Server.ConnContext].
func (s *Set) Open(ctx context.Context, conn net.Conn) context.Context {
	c := &clientConn{owner: s, conn: conn, wire: wireOf(conn), announcing: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if costs := s.costs.Load(); costs != nil {
		c.bill.due = costs.handshake
	}
	c.idle = monotonic()
	c.prefix = prefixOf(conn.RemoteAddr())
	c.address = s.at(c.prefix)
	c.address.clients[c] = struct{}{}
	s.conns[conn] = c
	return context.WithValue(ctx, clientKey{}, c)
}

// at returns the address with a prefix. Without connections and requests it must be released.
func (s *Set) at(prefix netip.Prefix) *address {
	a := s.addresses[prefix]
	if a == nil {
		a = &address{prefix: prefix, clients: make(map[*clientConn]struct{})}
		s.addresses[prefix] = a
	}
	return a
}

// State is an [http.Server.ConnState].
func (s *Set) State(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[conn]
	if c == nil {
		return
	}
	switch state {
	case http.StateActive, http.StateIdle:
		s.rest(c, monotonic())
		c.second = c.second || !c.asked && c.isSecond()
	case http.StateClosed:
		s.forget(c)
	case http.StateHijacked: // gone when the exchange is that has it
		c.closing = true
		if len(c.exchanges) == 0 {
			s.forget(c)
		}
	case http.StateNew:
	}
}

// isSecond reports whether a connection that has begun, TLS included, is one of HTTP/2. net/http says that it is active before
// its first request.
func (c *clientConn) isSecond() bool {
	if secured, ok := c.conn.(*tls.Conn); ok {
		return secured.ConnectionState().NegotiatedProtocol == "h2"
	}
	return c.wire.second.Load()
}

// forget removes a connection. Its exchanges count until they end.
func (s *Set) forget(c *clientConn) {
	s.rest(c, monotonic())
	c.bill.settle()
	delete(s.conns, c.conn)
	delete(c.address.clients, c)
	s.release(c.address)
}

// release removes an address without connections and requests.
func (s *Set) release(a *address) {
	if len(a.clients) == 0 && a.requests == 0 {
		delete(s.addresses, a.prefix)
	}
}

// Begin counts an exchange, and reports whether it is admitted. If so, End must be called.
func (s *Set) Begin(x *Exchange) bool {
	c := x.client
	if c == nil {
		return true
	}
	s.mu.Lock()
	c.second = !x.first
	c.address = s.at(c.prefix) // by HTTP/2 a request may begin when its connection is forgotten, and its address with it
	victim, ok := s.place(c)
	if ok {
		s.add(x)
	} else {
		s.rejected++
		s.release(c.address)
	}
	if victim != nil {
		s.remove(victim) // its handler may take a moment to end
		s.evicted.Add(1)
	}
	s.mu.Unlock()
	if victim != nil {
		victim.abort(errEvicted)
	}
	if !x.first {
		c.answers()
	}
	return ok
}

func (s *Set) add(x *Exchange) {
	c := x.client
	s.rest(c, monotonic())
	c.asked = true
	c.exchanges = append(c.exchanges, x)
	s.requests++
	c.address.requests++
}

// remove removes an exchange, unless that was done before.
func (s *Set) remove(x *Exchange) {
	c := x.client
	i := slices.Index(c.exchanges, x)
	if i < 0 {
		return
	}
	c.exchanges = slices.Delete(c.exchanges, i, i+1)
	s.requests--
	c.address.requests--
	c.idle = monotonic()
	if c.closing && len(c.exchanges) == 0 {
		s.forget(c)
	}
	s.release(c.address)
}

// End counts an exchange that has ended.
func (s *Set) End(x *Exchange) {
	if x.client == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(x)
}

// Watch ends exchanges whose client takes too long, and idle connections, until ctx ends.
func (s *Set) Watch(ctx context.Context, every func() time.Duration) {
	var announcing sync.WaitGroup
	defer announcing.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every()):
		}
		for _, x := range slices.Concat(s.late(), s.stalled()) {
			x.abort(errSlow)
		}
		end(s.idle(), &announcing)
	}
}

// late returns the exchanges whose client exceeds its bounds.
func (s *Set) late() (all []*Exchange) {
	now := monotonic()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		for _, x := range c.exchanges {
			if x.overdue(now) {
				all = append(all, x)
			}
		}
	}
	return all
}

// Stats is a snapshot of a [Set].
type Stats struct {
	Requests int    `json:"requests"` // including those that wait for their client
	Waiting  int    `json:"waiting"`  // of them
	Evicted  uint64 `json:"evicted"`  // exchanges and connections, since the start
	Rejected uint64 `json:"rejected"` // requests, at the cap, since the start
}

// Requests returns the number of requests, including requests that wait for their client.
func (s *Set) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Stats returns the levels and totals.
func (s *Set) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := Stats{Requests: s.requests, Evicted: s.evicted.Load(), Rejected: s.rejected}
	for _, c := range s.conns {
		for _, x := range c.exchanges {
			if x.waits() {
				all.Waiting++
			}
		}
	}
	return all
}

// clientOf returns the client that a request comes from, nil if that is not known.
func clientOf(r *http.Request) *clientConn {
	c, _ := r.Context().Value(clientKey{}).(*clientConn)
	return c
}
