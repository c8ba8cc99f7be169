package inflight

import (
	"sync"
	"time"
)

// A Key names a [Limiter] in a [Registry].
type Key struct {
	// Cluster is the name of the backend cluster.
	Cluster string
	// Service is the name under which the cluster's endpoints are discovered (EDS service name), or
	// "". A cluster that changes it gets a new count.
	Service string
}

// A Registry holds one [Limiter] for each [Key], so that all callers of a cluster share its count,
// whatever channel, client or protocol they use. A limit holds within one Registry: use one per
// process. It has as many Limiters as there are keys with a reference. The zero Registry is empty
// and ready for use. It is safe for concurrent use and must not be copied.
type Registry struct {
	mu     sync.Mutex
	shared map[Key]*shared
}

// shared is a limiter with its number of references.
type shared struct {
	*Limiter
	references int
}

// Share returns the Limiter for key, and a func that releases the reference. It makes a Limiter
// with the default limit if there is none. Call release when no more requests are sent; only its
// first call counts.
//
// While there is a reference, the limit and the count stay. To set a limit that outlives the
// channels, keep a reference. All references share the limit: the last change holds for all. After
// the last release, Share makes a new Limiter with the default limit and a count of zero, even if
// earlier requests are still in flight; these end on the Limiter that admitted them.
func (r *Registry) Share(key Key) (l *Limiter, release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.shared[key]
	if s == nil {
		s = &shared{Limiter: new(Limiter)}
		s.set(DefaultMaxInFlight)
		if r.shared == nil {
			r.shared = make(map[Key]*shared)
		}
		r.shared[key] = s
	}
	s.references++
	return s.Limiter, sync.OnceFunc(func() { r.release(key, s) })
}

func (r *Registry) release(key Key, s *shared) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.references--
	if s.references == 0 {
		delete(r.shared, key)
	}
}

// Stats returns the state of each Limiter that has a reference.
func (r *Registry) Stats(now time.Time) map[Key]Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[Key]Stats, len(r.shared))
	for key, s := range r.shared {
		all[key] = s.Stats(now)
	}
	return all
}
