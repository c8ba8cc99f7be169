package throttle

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// classes is the throttle of one name: of a route, of a customer, of all other routes, or of the
// backend.
type classes [spillway.Criticalities]class

// configure sets the configuration. limited, if not nil, counts the classes that limit anything.
func (c *classes) configure(cfg Config, limited *atomic.Int32) {
	for i := range c {
		c[i].configure(cfg, spillway.Sheddable+spillway.Criticality(i), limited)
	}
}

func (c *classes) stats(at time.Duration) (s Stats) {
	for i := range c {
		s[i] = c[i].stats(at)
	}
	return s
}

// forget ends all limits.
func (c *classes) forget() {
	for i := range c {
		c[i].mu.Lock()
		c[i].forget(c[i].cfg.Window)
		c[i].unlock()
	}
}

// A place is the entry of one route or customer in places.
type place struct {
	classes

	name    string
	hash    uint64
	latency latency
	charged atomic.Int32 // failures that counted for the backend, since they were last made up for
	used    atomic.Int64 // when a call was last settled, as a duration on the clock, to the second
}

// MaxRoutes is the maximum number of routes of a backend that have a throttle, and of customers.
const MaxRoutes = 256

// places has a place for each of at most MaxRoutes names. find takes no lock, as most calls need
// it, and looks by a hash of the name.
type places struct {
	all  atomic.Pointer[table] // the table is never changed, only replaced
	full atomic.Int64          // until when add fails at once, as the table was full

	mu   sync.Mutex
	gone Stats // totals of the names that were removed
}

// A table has the places by the hash of their name, and in the order in which they were made.
type table struct {
	byHash map[uint64]*place
	order  []*place
}

var noPlaces table

func (p *places) find(hash uint64) *place { return p.load().byHash[hash] }

func (p *places) load() *table {
	if all := p.all.Load(); all != nil {
		return all
	}
	return &noPlaces
}

// add returns the place of a name, and makes it if needed. If the table is full, it removes the
// names without calls in the last Window, or returns nil if all had calls.
func (p *places) add(hash uint64, at time.Duration, cfg Config, limited *atomic.Int32, name func() string) *place {
	if at < time.Duration(p.full.Load()) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.load()
	if x := old.byHash[hash]; x != nil {
		return x
	}
	next := table{byHash: make(map[uint64]*place, len(old.order)+1)}
	for _, x := range old.order {
		if len(old.order) < MaxRoutes || at-time.Duration(x.used.Load()) <= cfg.Window {
			next.put(x)
			continue
		}
		total(&p.gone, x.stats(at))
		x.forget()
	}
	if len(next.order) >= MaxRoutes {
		p.full.Store(int64(at + time.Second))
		return nil
	}
	x := &place{name: name(), hash: hash}
	x.used.Store(int64(at))
	x.configure(cfg.of(x.name), limited)
	next.put(x)
	p.all.Store(&next)
	return x
}

func (t *table) put(x *place) {
	t.byHash[x.hash] = x
	t.order = append(t.order, x)
}

// stats adds the totals of the places to s, and has s show their worst state: see worst.
func (p *places) stats(s *Stats, at time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	total(s, p.gone)
	for _, x := range p.load().order {
		of := x.stats(at)
		total(s, of)
		worst(s, of)
		for i := range s {
			if of[i].State != StateClosed { // else the throttle of the backend counts them
				s[i].Requests += of[i].Requests
				s[i].Accepts += of[i].Accepts
			}
		}
	}
}

// worst sets the state, the probability and the limit of s to the values of another throttle where
// these are worse.
func worst(s *Stats, of Stats) {
	for i := range s {
		s[i].State = max(s[i].State, of[i].State)
		s[i].Probability = max(s[i].Probability, of[i].Probability)
		s[i].Limit = min(s[i].Limit, of[i].Limit)
	}
}

// total adds the totals of a throttle to s.
func total(s *Stats, of Stats) {
	for i := range s {
		s[i].RejectedTotal += of[i].RejectedTotal
		s[i].ProbesTotal += of[i].ProbesTotal
	}
}
