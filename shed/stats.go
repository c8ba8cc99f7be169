package shed

import (
	"time"

	"github.com/seed90641741/spillway"
)

// Stats is the state of a [Shedder].
type Stats struct {
	// Classes is what is known of each criticality; index it with
	// [spillway.Criticality.Index].
	Classes [spillway.Criticalities]ClassStats
	// RejectedRatio is the recently rejected share of the requests that wait for a processor
	// or for the limit of all keys.
	RejectedRatio float64
	// Waiting is the number of waiting requests.
	Waiting int
	// Depth is the number of requests of the lowest class that may wait for the processors while an
	// overload stands. It is above zero.
	Depth float64
	// InFlight is how many requests are at work, by the Limit. Parked have been in flight
	// for so long that they do not count.
	InFlight, Parked int
}

// ClassStats says what is known of one criticality.
type ClassStats struct {
	RejectedRatio float64 // recently rejected share: the highest of all queues and callers
	AdmittedTotal uint64  // since the start
	RejectedTotal uint64  // since the start
	LateTotal     uint64  // part of RejectedTotal: the deadline was too close, whatever the load is
}

// Stats returns the state of s at the time now.
func (s *Shedder) Stats(now time.Time) Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[0]
	st := Stats{
		Classes: s.counts, RejectedRatio: q.cascade.above(0), Waiting: s.Waiting(),
		Depth: s.depth.of(q.cascade.above(0), s.processors),
	}
	if limit := s.config.Load().Limit; limit != nil {
		st.InFlight, st.Parked = limit.Working()
	}
	for i := range st.Classes {
		st.Classes[i].AdmittedTotal += s.passed[i].Load()
		for _, q := range s.queues {
			if q != nil {
				st.Classes[i].RejectedRatio = max(st.Classes[i].RejectedRatio, q.cascade.rejected(2*i), q.cascade.rejected(2*i+1))
			}
		}
	}
	return st
}
