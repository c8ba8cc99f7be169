// Package servers assigns clients of MongoDB to servers, and counts what each server answers.
package servers

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

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
)

// avoidFor is how long a server gets no new clients after it failed or was overloaded, if
// there are other servers.
const avoidFor = time.Second

// A Server is a MongoDB server.
type Server struct {
	Address string
	ID      [12]byte // by which drivers behind a load balancer know it

	trouble atomic.Int64           // when it failed or was overloaded last, in Unix nanoseconds
	gone    atomic.Bool            // from the configuration
	failure atomic.Pointer[string] // why the last connection was not made; nil: it was
	conns   int                    // under the mutex of its Set

	// The commands that are sent to it, hello and authentication apart.
	busy                   atomic.Int64
	total, errors, answers atomic.Uint64
	took                   atomic.Int64 // for all answers, in nanoseconds
}

// Gone reports whether the server was removed from the Set.
func (x *Server) Gone() bool { return x.gone.Load() }

// Begin counts a command that is sent to the server. [Server.End] must be called exactly once for it.
func (x *Server) Begin() { x.busy.Add(1) }

// End counts the end of a command with an outcome. timed says whether its duration is the server's.
func (x *Server) End(began time.Time, o spillway.Outcome, timed bool) {
	if o == spillway.OutcomeOverloaded {
		x.trouble.Store(time.Now().UnixNano())
	}
	x.busy.Add(-1)
	x.total.Add(1)
	if o == spillway.OutcomeFailed || o == spillway.OutcomeOverloaded || o == spillway.OutcomeTimedOut {
		x.errors.Add(1)
	}
	if timed {
		x.answers.Add(1)
		x.took.Add(int64(time.Since(began)))
	}
}

// Stats returns the levels of all servers.
func (e *Set) Stats() []upstream.EndpointStats {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]upstream.EndpointStats, 0, len(e.all))
	for _, x := range e.all {
		s := upstream.EndpointStats{
			Address: x.Address, Busy: int(x.busy.Load()), Total: x.total.Load(), Errors: x.errors.Load(),
			Answers: x.answers.Load(), Took: time.Duration(x.took.Load()),
		}
		if why := x.failure.Load(); why != nil {
			s.Failed, s.Trouble = true, *why
		}
		all = append(all, s)
	}
	return all
}

// A Set has the servers behind a listener, and the assignment of clients to them. It is safe for
// concurrent use; make one with [New].
type Set struct {
	mu      sync.Mutex
	all     []*Server
	clients map[netip.Addr]*placed // those with connections
}

// placed is the server of a client, with the number of its connections.
type placed struct {
	at    *Server // to which the next connection goes, also while one is being made
	home  *Server // to which the last connection was made; nil if there was none
	conns int
}

// New returns a Set without servers.
func New() *Set { return &Set{clients: make(map[netip.Addr]*placed)} }

// Update changes the list of servers. Servers in both lists are kept; removed servers are marked.
func (e *Set) Update(addresses []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.all
	e.all = nil
	for _, a := range addresses {
		if i := slices.IndexFunc(old, func(x *Server) bool { return x.Address == a }); i >= 0 {
			e.all = append(e.all, old[i])
			continue
		}
		x := &Server{Address: a}
		_, _ = rand.Read(x.ID[:]) // never fails
		e.all = append(e.all, x)
	}
	for _, x := range old {
		x.gone.Store(!slices.Contains(e.all, x))
	}
}

// enter picks the server for a connection of a client, and counts it there at once, before it
// is made, so that concurrent calls see it. It skips the servers in tried, and returns nil if
// no other is left.
func (e *Set) enter(client netip.Addr, now time.Time, tried []*Server) (best *Server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.clients[client]
	at := now.UnixNano()
	since := at - int64(avoidFor)
	rank := func(x *Server) int {
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

// Leave must be called exactly once when a connection of [Set.Connect] ends.
func (e *Set) Leave(client netip.Addr, x *Server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x.conns--
	p := e.clients[client]
	if p.conns--; p.conns == 0 {
		delete(e.clients, client)
	}
}

// arrive takes note that a connection to x was made.
func (e *Set) arrive(client netip.Addr, x *Server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.clients[client]
	p.at, p.home = x, x
}

// fail takes note that a connection to x was not made: the client stays where its connections are.
func (e *Set) fail(client netip.Addr, x *Server) {
	e.mu.Lock()
	if p := e.clients[client]; p.at == x {
		p.at = p.home
	}
	e.mu.Unlock()
	e.Leave(client, x)
}

// Connect connects a client to the first server that can be reached: its own, if it has
// connections, else the one with the fewest. timeout is for each server; nil is no TLS.
func (e *Set) Connect(ctx context.Context, client netip.Addr, timeout time.Duration, secure *tls.Config) (net.Conn, *Server, error) {
	errs := []error{errors.New("no server could be reached")}
	var tried []*Server
	for {
		x := e.enter(client, time.Now(), tried)
		if x == nil {
			return nil, nil, errors.Join(errs...)
		}
		c, err := dial(ctx, x.Address, timeout, secure)
		if err == nil {
			x.failure.Store(nil)
			e.arrive(client, x)
			return c, x, nil
		}
		e.fail(client, x)
		if ctx.Err() != nil {
			return nil, nil, err // the client has left, which is no trouble
		}
		x.trouble.Store(time.Now().UnixNano())
		x.failure.Store(new(upstream.TroubleOf(err)))
		tried, errs = append(tried, x), append(errs, err)
	}
}

func dial(ctx context.Context, address string, timeout time.Duration, secure *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if secure == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	return (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", address) // its ServerName defaults to the host
}
