package httpproxy

import (
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// costs are what a connection costs the quota of its customer in addition to requests. The unit
// is a request.
type costs struct {
	handshake float64
	idle      float64 // per second without a request
}

// costsOf returns the costs that a listener has, nil for none.
func costsOf(c *config.Listener) *costs {
	if c.HandshakeCost == 0 && c.IdleCost == 0 {
		return nil
	}
	return &costs{c.HandshakeCost, c.IdleCost}
}

// A bill is what a connection has cost since a customer was last charged for it. Before the
// first request the customer is unknown: max_connections and connection_rate bound connections
// without requests.
type bill struct {
	due      float64
	gate     *gate  // of the latest request; nil: there was none yet
	customer string // that made it
}

// rest takes in that a connection has been idle until now if it has no requests. The lock is
// held.
func (s *clients) rest(c *clientConn, now int64) {
	if costs := s.costs.Load(); costs != nil && c.requests == 0 {
		c.bill.due += costs.idle * time.Duration(now-c.idle).Seconds()
	}
	c.idle = now
}

// settle charges what a connection has cost to the customer of its latest request. The lock
// is held.
func (b *bill) settle() {
	if b.gate != nil && b.due > 0 {
		b.gate.ingress.Charge(time.Now(), b.customer, b.due)
		b.due = 0
	}
}

// charge charges what the connection has cost before a request of this customer: to the
// customer of the request before, or to this one if there was none. It may be called more than
// once for a request.
func (c *clientConn) charge(g *gate, customer string) {
	if c == nil || c.owner.costs.Load() == nil {
		return
	}
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	c.bill.settle()
	c.bill.gate, c.bill.customer = g, customer
	c.bill.settle()
}
