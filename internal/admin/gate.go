package admin

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/admin/finite"
	"github.com/seed90641741/spillway/internal/admin/limits"
)

// GateOf returns the levels of a server. In observe mode no request really waits, and while the shedder is off its limit has
// no meaning.
func GateOf(listener, cluster string, s *ingress.Stats) Gate {
	g := Gate{
		Listener: listener, Cluster: cluster, Busy: finite.Number(s.Load.Utilization),
		Waits:      Waits{Count: s.RateLimit.QueuedTotal - uint64(s.RateLimit.Waiting), Total: s.RateLimit.TimeQueued},
		RetryShare: s.Attempts.RetryShare, DontRetry: s.Attempts.DontRetry,
	}
	for _, queue := range []struct {
		mode    spillway.Mode
		waiting int
	}{{s.Modes.Shed, s.Shed.Waiting}, {s.Modes.RateLimit, s.RateLimit.Waiting}} {
		if queue.mode == spillway.ModeEnforce {
			g.Waiting += queue.waiting
		}
	}
	if s.Modes.Shed == spillway.ModeOff {
		return g
	}
	g.Adaptive, g.Keys = true, limits.Keys(cluster, &s.Concurrency)
	tightest := s.Concurrency.Tightest()
	g.Limit, g.Bound, g.Unknown, g.Baseline = finite.Number(tightest.Limit), tightest.Limiting(), tightest.Unknown, tightest.BaseLatency
	for class := range g.RejectedRatio {
		g.RejectedRatio[class] = s.Shed.Classes[class].RejectedRatio
	}
	return g
}
