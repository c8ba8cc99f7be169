package throttle

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// classes is the throttle of one name, by criticality.
type classes [spillway.Criticalities]class

// configure takes a new configuration. The counter is of the classes that limit anything.
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

// A place is the state of one name.
type place struct {
	classes

	name    string
	hash    uint64
	latency latency
	charged atomic.Int32 // failures that counted for the backend since the last paid-up accept
	used    atomic.Int64 // when a call was last settled, to the second
}

// MaxRoutes is how many routes of a backend, and how many customers, have a place.
const MaxRoutes = 256

// places are the names that have a place. They are found without a lock, by a hash of the name,
// as most calls look for one.
type places struct {
	all  atomic.Pointer[table] // never changed, only replaced
	full atomic.Int64          // until when there is no room

	mu   sync.Mutex
	gone Stats // totals of names that have lost their place
}

// A table has the places by hash, and in the order in which they were made.
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

// add gives a name a place. Where all are taken it replaces names that made no call within the
// Window, or returns nil.
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

// stats adds up what the places know: see worst for the names that limit anything.
func (p *places) stats(s *Stats, at time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	total(s, p.gone)
	for _, x := range p.load().order {
		of := x.stats(at)
		total(s, of)
		worst(s, of)
		for i := range s {
			if of[i].State != StateClosed { // else the backend counts them
				s[i].Requests += of[i].Requests
				s[i].Accepts += of[i].Accepts
			}
		}
	}
}

// worst puts the state, the probability and the limit of a throttle into s where they are worse.
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
