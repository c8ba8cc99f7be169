package inflight

import (
	"sync"
	"time"
)

// A Key names a [Limiter] of a [Registry].
type Key struct {
	// Cluster is the name of the backend cluster.
	Cluster string
	// Service is the name under which the cluster's endpoints are discovered (EDS
	// service name), where it has one. A cluster that moves to another service
	// starts a new count.
	Service string
}

// A Registry holds one [Limiter] for each [Key], so that all callers of a cluster share its
// count, whatever channel, client or protocol they use. The scope of the limit is the scope of
// the Registry: use one per process. Its size is bounded by the number of references in use.
// The zero Registry is empty and ready; it is safe for concurrent use and must not be copied.
type Registry struct {
	mu     sync.Mutex
	shared map[Key]*shared
}

// shared is a limiter and how many references to it are out.
type shared struct {
	*Limiter
	references int
}

// Share returns the Limiter for key, made with the default limit if there is none yet, and a
// func that releases the reference; call it when no more requests are sent. The first call of
// release counts, any further one does nothing.
//
// While a reference is held, the limit and the count stay: to set a limit that
// outlives the channels, keep the reference. The limit is that of the Limiter: the
// last change counts for all. After the last
// release a new Share starts again, with the default limit and a count of zero,
// even if requests of old are still in flight; they end on the Limiter that
// admitted them.
func (r *Registry) Share(key Key) (l *Limiter, release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.shared[key]
	if s == nil {
		s = &shared{Limiter: new(Limiter)}
		s.set(DefaultMaxRequests)
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

// Stats returns a snapshot of each Limiter that is held.
func (r *Registry) Stats(now time.Time) map[Key]Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[Key]Stats, len(r.shared))
	for key, s := range r.shared {
		all[key] = s.Stats(now)
	}
	return all
}
