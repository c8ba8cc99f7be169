package quota

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/elapsed"
	"github.com/seed90641741/spillway/internal/invalid"
)

const (
	// maxName is the maximum length of a name, in bytes, for which an unlisted customer gets its
	// own bucket.
	maxName = 256
	// tries is how many unlisted customers are checked to find an idle one whose bucket a new one
	// can get.
	tries = 8
)

// Config configures a [Quota].
type Config struct {
	// Allocator decides how much each customer may use. It must be set; [NewLocal] makes one.
	Allocator Allocator

	// BurstSeconds is the depth of each bucket, in seconds at the customer's rate. A class stays
	// rejected for a quarter of it after the next higher class was rejected. Higher values allow
	// more uneven use. Lower values limit sooner what a customer can do to the server in a short
	// time. Zero means 1; it must be 0.01 to 3600.
	BurstSeconds float64

	// Cost is what a call is charged when it is admitted. Zero means 1. A negative value charges
	// nothing, for services that charge the measured cost of a call with [Quota.Charge]. It must be
	// at most 1e6.
	Cost float64

	// MaxUnlisted is the maximum number of customers unknown to the Allocator that have their own
	// bucket. A bucket takes about 1 kB, and as much again for each class with rejections. Further
	// unlisted customers share one bucket. Zero means 1000; negative means that all share one. It
	// must be at most 1e6.
	MaxUnlisted int
}

// withDefaults returns c with defaults for its zero fields, or an error that names the first bad
// field.
func (c Config) withDefaults() (Config, error) {
	if c.BurstSeconds == 0 {
		c.BurstSeconds = 1
	}
	if c.Cost == 0 {
		c.Cost = 1
	}
	if c.MaxUnlisted == 0 {
		c.MaxUnlisted = 1000
	}
	switch {
	case c.Allocator == nil:
		return c, invalid.Field("quota", "Allocator", nil, "set")
	case !(c.BurstSeconds >= 0.01 && c.BurstSeconds <= 3600):
		return c, invalid.Field("quota", "BurstSeconds", c.BurstSeconds, "0.01 to 3600")
	case !(c.Cost <= 1e6):
		return c, invalid.Field("quota", "Cost", c.Cost, "at most 1e6, or negative for none")
	case c.MaxUnlisted > 1e6:
		return c, invalid.Field("quota", "MaxUnlisted", c.MaxUnlisted, "at most 1000000, or negative for none")
	}
	c.Cost = max(c.Cost, 0)
	return c, nil
}

// A Quota is a [spillway.Gate] that rejects calls of customers over their quota. It is safe for
// concurrent use and must not be copied. Make one with [New].
type Quota struct {
	mu         sync.Mutex
	cfg        Config
	burst      time.Duration
	clock      elapsed.Clock
	at         time.Duration  // time of the latest call
	customers  []*customer    // index 0 is for all without their own entry
	places     map[string]int // index in customers, by name
	unlisted   customer       // all unlisted customers together
	settled    customer       // all established unlisted customers together
	unlistedAt []int          // indexes of unlisted customers, without 0
	hand       int            // index in unlistedAt where the next search starts
}

// New returns a Quota in which nothing is used. An error names the field of c that is out of range.
func New(c Config) (*Quota, error) {
	q := &Quota{customers: []*customer{{}}, places: map[string]int{"": 0}, unlisted: customer{all: true}}
	if err := q.Update(c); err != nil {
		return nil, err
	}
	return q, nil
}

// Update changes the configuration of a Quota in use. An error names the field that is out of
// range, and nothing has changed then. Debts keep their length in seconds, and leases last until
// their end. After MaxUnlisted was lowered, a new unlisted customer can only get the bucket of an
// idle one, and no memory is freed.
func (q *Quota) Update(c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cfg, q.burst = c, time.Duration(c.BurstSeconds*float64(time.Second))
	return nil
}

// Admit charges Config.Cost to call.Customer, or rejects the call if the customer is over its quota
// for calls of this criticality. It implements [spillway.Gate]. It allocates the bucket of a new
// customer, and once per second some errors for each class of a customer with rejections.
//
// Settling with [spillway.OutcomeNotStarted] gives the cost back. Any other outcome does not.
func (q *Quota) Admit(now time.Time, call spillway.Call) (spillway.Ticket, error) {
	class := call.Criticality.Index()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.see(now)
	c, place := q.leased(q.place(call.Customer))
	if by, wait := q.rejectedFor(c, class, c.belowHighest(q.at, &call)); wait > 0 {
		return spillway.Ticket{}, by.rejection(q.at, q.burst, class, wait, q.cfg.Cost)
	}
	if c.admit(q.at, class, q.cfg.Cost); call.Progress > 0 {
		c.tasksUntil = q.at + tasksFor
	}
	if all := q.bound(c); all != nil {
		all.admit(q.at, class, q.cfg.Cost)
		q.settle(c, class, q.cfg.Cost)
	}
	epoch := uint64(c.generation)<<32 | uint64(place)
	return spillway.Ticket{By: q, Epoch: epoch, Criticality: call.Criticality}, nil
}

// Reject returns the rejection that Admit would return at the time now, and counts it. If Admit
// would admit the call, Reject returns nil, and neither charges nor counts anything. It allocates
// as Admit does.
func (q *Quota) Reject(now time.Time, call spillway.Call) error {
	class := call.Criticality.Index()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.see(now)
	c, _ := q.leased(q.place(call.Customer))
	by, wait := q.rejectedFor(c, class, c.belowHighest(q.at, &call))
	if wait == 0 {
		return nil
	}
	return by.rejection(q.at, q.burst, class, wait, q.cfg.Cost)
}

// rejectedFor returns how long calls of a class of c are rejected, and by which bucket: that of the
// customer, or that of all unlisted customers. It counts rejections, and not admissions. below is
// the result of belowHighest for the call.
func (q *Quota) rejectedFor(c *customer, class, below int) (by *customer, wait time.Duration) {
	if wait = c.rejectedFor(q.at, q.burst, class, below); wait > 0 {
		c.reject(q.at, class, q.cfg.Cost)
		if c.setting == UnlistedTotal {
			q.unlisted.count(q.at, class)
		}
		return c, wait
	}
	if all := q.bound(c); all != nil {
		by := all
		if c.established() {
			by = &q.settled
		}
		if wait = by.rejectedFor(q.at, q.burst, class, below); wait > 0 {
			all.reject(q.at, class, q.cfg.Cost)
			c.reject(q.at, class, q.cfg.Cost)
			return all, wait
		}
	}
	return c, 0
}

// see moves the clock to the time now. It ignores times that go back.
func (q *Quota) see(now time.Time) {
	q.at = q.clock.See(now)
}

// leased returns the customer at an index, with a valid lease, and its index. If the Allocator has
// no separate rate for that customer, the result is the customer at index 0.
func (q *Quota) leased(place int) (*customer, int) {
	if q.at >= q.customers[place].until {
		q.renew(place)
	}
	if place > 0 && q.customers[place].unlisted {
		return q.leased(0)
	}
	return q.customers[place], place
}

// renew gets the next lease from the Allocator.
func (q *Quota) renew(place int) {
	c, now := q.customers[place], q.clock.Time(q.at)
	g := q.cfg.Allocator.Lease(now, c.demand(q.at))
	c.lease(q.at, q.at+min(g.Until.Sub(now), maxDebt), q.burst, g)
	if place > 0 {
		q.know(place, q.cfg.Allocator.Known(c.name))
	}
}

// know records whether the Allocator knows the customer at an index, which may change.
func (q *Quota) know(place int, known bool) {
	c := q.customers[place]
	switch {
	case known && !c.known:
		q.unlistedAt = slices.DeleteFunc(q.unlistedAt, func(i int) bool { return i == place })
	case !known && c.known:
		q.unlistedAt = append(q.unlistedAt, place)
	}
	c.known = known
}

// place returns the index of a customer. A new customer gets an entry if possible, and otherwise
// index 0.
func (q *Quota) place(name string) int {
	if i, ok := q.places[name]; ok {
		return i
	}
	known := q.cfg.Allocator.Known(name)
	switch {
	case !known && len(name) > maxName:
		return 0
	case !known && len(q.unlistedAt) >= q.cfg.MaxUnlisted:
		return q.replace(name)
	}
	place := len(q.customers)
	c := &customer{name: strings.Clone(name), leased: q.at, known: known}
	q.customers = append(q.customers, c)
	q.places[c.name] = place
	if !known {
		q.unlistedAt = append(q.unlistedAt, place)
	}
	return place
}

// replace gives the entry of an idle unlisted customer to a new one, and returns its index. If no
// idle one is found in a few tries, it returns 0.
func (q *Quota) replace(name string) int {
	for range min(tries, len(q.unlistedAt)) {
		q.hand = (q.hand + 1) % len(q.unlistedAt)
		place := q.unlistedAt[q.hand]
		if c := q.customers[place]; c.idle(q.at) {
			delete(q.places, c.name)
			*c = customer{name: strings.Clone(name), generation: c.generation + 1, leased: q.at}
			q.places[c.name] = place
			return place
		}
	}
	return 0
}

var _ spillway.Gate = (*Quota)(nil)
