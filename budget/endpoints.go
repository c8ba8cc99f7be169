package budget

import (
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

// EndpointsConfig configures [Endpoints].
type EndpointsConfig struct {
	// MaxEndpoints is the maximum number of endpoints that are remembered, of about 200 bytes each.
	// If it is below the number of endpoints in use, budgets are forgotten before they have an
	// effect; EvictedTotal shows that. Zero means 1024; it must not be negative.
	MaxEndpoints int
	// Bucket configures the bucket of each endpoint.
	Bucket Config
}

// Endpoints keeps a [Bucket] for each endpoint, so that an overloaded endpoint cannot use up the
// retries of the others. It is safe for concurrent use. Make one with [NewEndpoints].
//
// If MaxEndpoints are known and a new one is used, the endpoint whose last use is longest ago is
// forgotten. If it is used again, it starts with a new bucket. So the names that callers use cannot
// exhaust memory. Little is lost, because MaxEndpoints other endpoints were used since its bucket
// last changed.
type Endpoints struct {
	config Config
	max    int

	mu      sync.Mutex
	known   map[string]*endpoint
	recent  endpoint // root of a ring in the order of use: next was used last
	evicted uint64
}

type endpoint struct {
	bucket     Bucket
	key        string
	prev, next *endpoint
}

// NewEndpoints returns an Endpoints without buckets. An error names the field of c that is out of
// range.
func NewEndpoints(c EndpointsConfig) (*Endpoints, error) {
	bucket, err := c.Bucket.withDefaults()
	if err != nil {
		return nil, invalid.In("budget", "Bucket", err)
	}
	if c.MaxEndpoints < 0 {
		return nil, invalid.Field("budget", "MaxEndpoints", c.MaxEndpoints, "above 0")
	}
	if c.MaxEndpoints == 0 {
		c.MaxEndpoints = 1024
	}
	e := &Endpoints{config: bucket, max: c.MaxEndpoints, known: make(map[string]*endpoint)}
	e.recent.prev, e.recent.next = &e.recent, &e.recent
	return e, nil
}

// Withdraw calls [Bucket.Withdraw] on the bucket of key.
func (e *Endpoints) Withdraw(now time.Time, key string, tokens float64) (left, capacity float64, ok bool) {
	return e.Bucket(key).Withdraw(now, key, tokens)
}

// Deposit calls [Bucket.Deposit] on the bucket of key.
func (e *Endpoints) Deposit(key string, tokens float64) { e.Bucket(key).Deposit(key, tokens) }

// Bucket returns the bucket of key, and marks it as used last. It allocates only for a new key. A
// Bucket whose endpoint is forgotten continues to work, but no longer counts for the endpoint.
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

// addLocked returns a new endpoint that is not in the ring yet. It may forget another one.
func (e *Endpoints) addLocked(key string) *endpoint {
	if len(e.known) >= e.max {
		oldest := e.recent.prev
		oldest.unlink()
		delete(e.known, oldest.key)
		e.evicted++
	}
	p := &endpoint{key: strings.Clone(key)} // key may be a part of a long string
	p.bucket.configure(e.config)
	e.known[p.key] = p
	return p
}

func (p *endpoint) link(after *endpoint) {
	p.prev, p.next = after, after.next
	p.prev.next, p.next.prev = p, p
}

func (p *endpoint) unlink() { p.prev.next, p.next.prev = p.next, p.prev }

// EndpointsStats is the state of an [Endpoints].
type EndpointsStats struct {
	Known        int    // endpoints remembered now
	EvictedTotal uint64 // endpoints forgotten since the start
}

// Stats returns the state of e. For one endpoint call e.Bucket(key).Stats(now).
func (e *Endpoints) Stats(now time.Time) EndpointsStats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return EndpointsStats{Known: len(e.known), EvictedTotal: e.evicted}
}
