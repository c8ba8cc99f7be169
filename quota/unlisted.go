package quota

import (
	"math"
	"time"
)

const (
	// leastAdmitted is how many calls of an unlisted customer must be admitted before it is
	// established.
	leastAdmitted = 20
	// staysEstablished is how long an established customer without calls keeps its bucket.
	staysEstablished = 10 * time.Second
)

// established reports whether the customer has its own bucket, and enough calls were admitted from
// it.
func (c *customer) established() bool {
	n := uint64(0)
	for i := range c.calls {
		n += c.calls[i].AdmittedTotal
	}
	return c.name != "" && n >= leastAdmitted
}

// bound returns the bucket of all unlisted customers, with a valid lease, or nil if c is listed or
// there is no such limit.
func (q *Quota) bound(c *customer) *customer {
	if c.known {
		return nil
	}
	all := &q.unlisted
	if q.at >= all.until {
		by, ok := q.cfg.Allocator.(UnlistedAllocator)
		if !ok {
			return nil
		}
		now := q.clock.Time(q.at)
		g := by.LeaseUnlisted(now, all.demand(q.at))
		until := q.at + min(g.Until.Sub(now), maxDebt)
		all.lease(q.at, until, q.burst, g)
		q.settled.lease(q.at, until, q.burst, g)
	}
	if math.IsInf(all.rate, 1) {
		return nil
	}
	return all
}

// settle charges the bucket of the established unlisted customers, if c is one of them.
func (q *Quota) settle(c *customer, class int, amount float64) {
	if c.established() {
		q.settled.charge(q.at, class, amount)
	}
}
