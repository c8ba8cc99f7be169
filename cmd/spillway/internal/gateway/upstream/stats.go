package upstream

import (
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/balance"
)

// EndpointStats is a snapshot of an endpoint.
type EndpointStats struct {
	Address string
	Busy    int           // attempts in flight
	Total   uint64        // attempts
	Errors  uint64        // of them, failed ones
	Answers uint64        // of them, those with an answer
	Took    time.Duration // all answers, up to their heads
	State   balance.State // why it is skipped
	Weight  float64       // relative to the mean
	Failed  bool          // the last connection failed less than 10 s ago, and no answer came since
	Trouble string        // why there was no connection, of the last time that there was none

	Health       Health // by its checks
	ChecksTotal  uint64 // checks that have ended
	SkippedTotal uint64 // checks that were not made, as requests were served
	Reason       string // of the last check that failed
}

func (e *endpoints) stats(now time.Time) []EndpointStats {
	all := make([]EndpointStats, 0, len(e.all))
	at := int64(now.Sub(e.set.Start()))
	for i, x := range e.all {
		s := EndpointStats{
			Address: x.address, Busy: x.Busy(), Total: x.total.Load(),
			Errors: x.errors.Load(), Answers: x.answers.Load(), Took: time.Duration(x.took.Load()), State: e.set.State(now, x.Endpoint), Weight: e.set.Weight(i),
			Failed: x.lost.Load() && x.failed.Load() >= at-int64(lose),
			Health: x.health.is(), ChecksTotal: x.health.checks.Load(), SkippedTotal: x.health.skipped.Load(),
		}
		if trouble := x.trouble.Load(); trouble != nil {
			s.Trouble = *trouble
		}
		if reason := x.health.reason.Load(); reason != nil {
			s.Reason = *reason
		}
		all = append(all, s)
	}
	return all
}
