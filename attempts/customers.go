package attempts

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

// DefaultCustomers is how many customers [NewCustomers] makes room for unless it
// sets another value.
const DefaultCustomers = 1024

// maxCustomers bounds the memory, which is 1.5 kB for each customer.
const maxCustomers = 1 << 20

// probes is in how many places a customer is looked for.
const probes = 8

// Customers keeps a history for each of a bounded number of customers, whose
// claims count against themselves only. A customer gives up its place once it
// sent nothing for Config.Window; until then no other customer can take it. One that finds
// no place is not remembered, and is never told not to retry.
//
// Names are not kept, only their hashes, which are different in each process.
// Customers is safe for concurrent use and must not be copied; make one with
// [NewCustomers].
type Customers struct {
	mu    sync.Mutex
	cfg   Config
	seed  maphash.Seed
	slots []customer
}

// customer is a place in the table.
type customer struct {
	hash   uint64
	window *window // nil while nobody has had the place
}

// NewCustomers returns a table for n customers, each with a history bounded by c,
// or an error that names what is out of range. Zero for n means
// [DefaultCustomers]; it must be at most 2^20. Memory is taken when it is needed.
func NewCustomers(c Config, n int) (*Customers, error) {
	if n == 0 {
		n = DefaultCustomers
	}
	if n < 1 || n > maxCustomers {
		return nil, invalid.Field("attempts", "customers", n, "1 to %d", maxCustomers)
	}
	t := &Customers{seed: maphash.MakeSeed(), slots: make([]customer, n)}
	if err := t.Update(c); err != nil {
		return nil, err
	}
	return t, nil
}

// Update changes the configuration for all customers, as [Histogram.Update] does.
func (t *Customers) Update(c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cfg = c
	return nil
}

// Observe counts a request of the customer, as [Histogram.Observe] does. It
// allocates only when a place is used for the first time.
func (t *Customers) Observe(now time.Time, name string, attempt int) {
	hash := maphash.String(t.seed, name)
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.find(hash)
	if w == nil {
		w = t.place(now, hash)
	}
	if w != nil {
		w.observe(now, attempt, &t.cfg)
	}
}

// DontRetry reports whether a request of the customer that is rejected at the time
// now had better not be retried.
func (t *Customers) DontRetry(now time.Time, name string) bool {
	hash := maphash.String(t.seed, name)
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.find(hash)
	if w == nil {
		return false
	}
	w.see(now, &t.cfg)
	return t.cfg.dontRetry(&w.sum)
}

// slot returns the i-th place in which a customer is looked for.
func (t *Customers) slot(hash uint64, i int) *customer {
	return &t.slots[(hash+uint64(i))%uint64(len(t.slots))]
}

// find returns the customer's window, or nil if it has no place.
func (t *Customers) find(hash uint64) *window {
	for i := range min(probes, len(t.slots)) {
		if c := t.slot(hash, i); c.hash == hash && c.window != nil {
			return c.window
		}
	}
	return nil
}

// place finds a free place, or whose owner has gone quiet, and returns
// its empty window; nil if all are taken.
func (t *Customers) place(now time.Time, hash uint64) *window {
	for i := range min(probes, len(t.slots)) {
		c := t.slot(hash, i)
		if c.window == nil {
			c.window = new(window)
		}
		c.window.see(now, &t.cfg)
		if c.window.used == 0 {
			c.hash = hash
			return c.window
		}
	}
	return nil
}
