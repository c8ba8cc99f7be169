package shed

import "github.com/seed90641741/spillway"

// Stats says how a [Shedder] stands.
type Stats struct {
	// Classes is what is known of each criticality; index it with
	// [spillway.Criticality.Index].
	Classes [spillway.Criticalities]ClassStats
	// Refused is the share of all requests refused of late.
	Refused float64
	// Waiting is how many requests wait.
	Waiting int
	// Depth is how many may, for each processor, where a class is being refused.
	Depth float64
	// InFlight is how many requests run, and MaxInFlight how many may. Parked
	// are requests that have run for so long that they are not counted there.
	InFlight, Parked int
	MaxInFlight      float64
	// Bound says that the limit in flight was needed of late: requests wait on
	// something else than a processor.
	Bound bool
	// Throughput is the greatest number of requests per second that ended, of the
	// last seconds, and Latency the mean number of seconds that they take without a
	// queue.
	Throughput, Latency float64
	// EvictedTotal and ExpiredTotal are how many waiters were refused to make
	// place for more critical ones, and for having waited too long.
	EvictedTotal, ExpiredTotal uint64
}

// ClassStats says what is known of one criticality.
type ClassStats struct {
	Refused       float64 // share of late
	AdmittedTotal uint64  // since the start
	RefusedTotal  uint64  // since the start
}

// Stats returns how s stands.
func (s *Shedder) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{
		Classes: s.counts, Refused: s.cascade.all,
		Waiting: s.room.n, Depth: s.depth.of(s.cascade.classes[0].above),
		InFlight: s.limit.flight.moving(), Parked: s.limit.flight.parked,
		MaxInFlight: s.limit.most(s.processors), Bound: s.limit.bound,
		Throughput: s.limit.rate.value(), Latency: s.limit.mean.value,
		EvictedTotal: s.evicted, ExpiredTotal: s.expired,
	}
	for i := range st.Classes {
		st.Classes[i].Refused = s.cascade.classes[i].refused
	}
	return st
}
