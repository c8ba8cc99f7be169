package budget

import (
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

// EndpointsConfig configures [Endpoints].
type EndpointsConfig struct {
	// Max is how many endpoints are remembered. It bounds memory, about 200 bytes
	// each; if it is below the number of endpoints in use, budgets are forgotten
	// before they bind, which Evicted tells. Zero means 1024.
	Max int
	// Bucket configures the bucket of each endpoint.
	Bucket Config
}

// Endpoints keeps a [Bucket] for each endpoint, so that one that is overloaded
// cannot use up the retries of the others. It is safe for concurrent use; make
// one with [NewEndpoints].
//
// When a new endpoint comes and Max are known, the one that was not used for
// longest is forgotten. Should it come back, it starts with a bucket like any
// new endpoint's. To remember more of it would need memory for every name that
// was ever called, and little is lost: the endpoint was idle for as long a time as Max
// others were not, so what its bucket said is old.
type Endpoints struct {
	config Config
	max    int

	mu      sync.Mutex
	known   map[string]*endpoint
	recent  endpoint // a ring: next is the one used last, prev the one used first
	evicted uint64
}

type endpoint struct {
	bucket     Bucket
	key        string
	prev, next *endpoint
}

// NewEndpoints returns an Endpoints that knows of none yet, or an error that
// names the field of c that is out of range.
func NewEndpoints(c EndpointsConfig) (*Endpoints, error) {
	bucket, err := c.Bucket.withDefaults()
	if err != nil {
		return nil, invalid.In("budget", "Bucket", err)
	}
	if c.Max < 0 {
		return nil, invalid.Field("budget", "Max", c.Max, "above 0")
	}
	if c.Max == 0 {
		c.Max = 1024
	}
	e := &Endpoints{config: bucket, max: c.Max, known: make(map[string]*endpoint)}
	e.recent.prev, e.recent.next = &e.recent, &e.recent
	return e, nil
}

// Withdraw is [Bucket.Withdraw] on the bucket of key.
func (e *Endpoints) Withdraw(now time.Time, key string, tokens float64) (left, capacity float64, ok bool) {
	return e.Bucket(key).Withdraw(now, key, tokens)
}

// Deposit is [Bucket.Deposit] on the bucket of key.
func (e *Endpoints) Deposit(key string, tokens float64) { e.Bucket(key).Deposit(key, tokens) }

// Bucket returns the bucket of key, which from now on is the one used last. It
// allocates only for a key that is not known. A Bucket that is held while its
// endpoint is forgotten goes on to work, and counts for nothing.
func (e *Endpoints) Bucket(key string) *Bucket {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.known[key]
	switch {
	case p == nil:
		p = e.addLocked(key)
	case p == e.recent.next:
		return &p.bucket
	default:
		p.unlink()
	}
	p.link(&e.recent)
	return &p.bucket
}

// addLocked makes room for one more endpoint and returns it, not yet linked.
func (e *Endpoints) addLocked(key string) *endpoint {
	if len(e.known) >= e.max {
		oldest := e.recent.prev
		oldest.unlink()
		delete(e.known, oldest.key)
		e.evicted++
	}
	p := &endpoint{key: strings.Clone(key)} // key may be part of a whole message
	p.bucket.configure(e.config)
	e.known[p.key] = p
	return p
}

func (p *endpoint) link(after *endpoint) {
	p.prev, p.next = after, after.next
	p.prev.next, p.next.prev = p, p
}

func (p *endpoint) unlink() { p.prev.next, p.next.prev = p.next, p.prev }

// EndpointsStats says how an [Endpoints] stands.
type EndpointsStats struct {
	Known        int    // endpoints remembered now
	EvictedTotal uint64 // endpoints forgotten since the start
}

// Stats returns how e stands; e.Bucket(key).Stats(now) reports one endpoint.
func (e *Endpoints) Stats(now time.Time) EndpointsStats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return EndpointsStats{Known: len(e.known), EvictedTotal: e.evicted}
}
