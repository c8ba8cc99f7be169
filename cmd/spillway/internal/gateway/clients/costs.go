package clients

import (
	"net/http"
	"time"

	"github.com/seed90641741/spillway/ingress"
)

// costs are what [Set.SetCosts] sets.
type costs struct {
	handshake float64
	idle      float64 // per second without a request
}

// SetCosts sets the costs of a connection, which count against the quota of its customer in
// addition to requests: once, and for each second without a request. The unit is a request.
func (s *Set) SetCosts(handshake, idlePerSecond float64) {
	if handshake == 0 && idlePerSecond == 0 {
		s.costs.Store(nil)
		return
	}
	s.costs.Store(&costs{handshake, idlePerSecond})
}

// A bill is the cost of a connection since a customer was last charged for it. Before the
// first request the customer is unknown: max_connections and connection_rate bound connections
// without requests.
type bill struct {
	due      float64
	server   *ingress.Server // of the latest request; nil: there was none yet
	customer string          // that made it
}

// rest adds the idle time of a connection without requests up to now. The lock is held.
func (s *Set) rest(c *clientConn, now int64) {
	if costs := s.costs.Load(); costs != nil && len(c.exchanges) == 0 {
		c.bill.due += costs.idle * time.Duration(now-c.idle).Seconds()
	}
	c.idle = now
}

// settle charges the cost of a connection to the customer of its latest request. The lock is
// held.
func (b *bill) settle() {
	if b.server != nil && b.due > 0 {
		b.server.Charge(time.Now(), b.customer, b.due)
		b.due = 0
	}
}

// Charge charges what the connection of a request has cost before it: to the customer of the
// request before, or to this one if there was none. It may be called more than once for a
// request.
func Charge(r *http.Request, server *ingress.Server, customer string) {
	c := clientOf(r)
	if c == nil || c.owner.costs.Load() == nil {
		return
	}
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	c.bill.settle()
	c.bill.server, c.bill.customer = server, customer
	c.bill.settle()
}
