package quota

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

// Settle implements [spillway.Settler]; use [spillway.Ticket.Settle].
func (q *Quota) Settle(now time.Time, t spillway.Ticket, o spillway.Outcome) {
	if o != spillway.OutcomeNotStarted {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if c, ok := q.owner(now, &t); ok {
		class := t.Criticality.Index()
		c.charge(q.at, class, -q.cfg.Cost)
		if all := q.bound(c); all != nil {
			all.charge(q.at, class, -q.cfg.Cost)
			q.settle(c, class, -q.cfg.Cost)
		}
	}
}

// Charge adds amount to the cost of the call of t. A negative amount is given back. amount is the
// measured cost minus Config.Cost. Call it before t is settled, any number of times. It does
// nothing for a settled ticket, for a ticket of another gate, and for an amount that is not finite.
//
// A charge may leave a debt above the burst, up to a year; calls are rejected until the debt has
// passed. If the customer has lost its bucket since its admission, the shared bucket is charged,
// and nothing is given back.
func (q *Quota) Charge(now time.Time, t *spillway.Ticket, amount float64) {
	if t.By != spillway.Settler(q) || math.IsNaN(amount) || math.IsInf(amount, 0) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	c, ok := q.owner(now, t)
	if !ok {
		c, _ = q.leased(0)
		amount = max(amount, 0)
	}
	q.measure(c, t.Criticality.Index(), amount)
}

// ChargeCustomer charges amount to a customer for costs that belong to no call, such as TLS
// handshakes and idle connections. It counts against the whole rate of the customer, not against
// the share of a class. It does nothing for an amount that is not finite or not above zero. See
// [Quota.Charge] for the debt that it leaves.
func (q *Quota) ChargeCustomer(now time.Time, customer string, amount float64) {
	if !(amount > 0) || math.IsInf(amount, 0) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.see(now)
	c, _ := q.leased(q.place(customer))
	q.measure(c, spillway.Criticalities-1, amount)
}

// owner returns the customer of the call of t. ok is false if that customer has lost its entry.
func (q *Quota) owner(now time.Time, t *spillway.Ticket) (c *customer, ok bool) {
	q.see(now)
	c = q.customers[uint32(t.Epoch)]
	return c, c.generation == uint32(t.Epoch>>32)
}

// measure charges a measured cost to a customer. If it is unlisted, measure also charges the cost
// to all unlisted customers together.
func (q *Quota) measure(c *customer, class int, amount float64) {
	c.measure(q.at, class, amount)
	if all := q.bound(c); all != nil {
		all.measure(q.at, class, amount)
		q.settle(c, class, amount)
	}
}
