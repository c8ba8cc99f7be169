package ingress

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/degradation"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// Stats is the state of the policies of a [Server].
type Stats struct {
	RateLimit ratelimit.Stats
	Quota     []quota.CustomerStats // nil without a quota
	// InFlight is the waiting queue before MaxInFlight, and Shed that of the shedder.
	InFlight, Shed shed.Stats
	// Concurrency is what the shedder's limits on requests at work know.
	Concurrency concurrency.Stats
	Load        load.Stats
	Attempts    attempts.Stats // of an internal listener
	// Degradation is how far answers are degraded, by class.
	Degradation degradation.Stats
	// RejectedTotal is the number of requests rejected since the start, by the Outcome of the
	// [Rejection].
	RejectedTotal [spillway.Outcomes]uint64
	// Costs is what Config.Costs has learned.
	Costs cost.Stats
	// Modes are the modes of the gates. A gate without a limit is off.
	Modes Modes
}

// Modes are the modes of the gates of a [Server].
type Modes struct {
	RateLimit, Quota, InFlight, Shed spillway.Mode
}

// Stats returns the levels of all policies at the time now.
func (s *Server) Stats(now time.Time) Stats {
	c := s.core.Stats(now)
	return Stats{
		RateLimit: c.RateLimit, Quota: c.Quota, InFlight: c.InFlight, Shed: c.Shed, Concurrency: c.Concurrency,
		Load: s.load.Stats(now), Attempts: c.Attempts, Degradation: c.Degradation,
		RejectedTotal: c.RejectedTotal, Costs: c.Costs, Modes: Modes(c.Modes),
	}
}
