package ingress

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/shed"
)

// signals are what a Server reports of its load: levels of degradation to handlers,
// accept ratios to clients. They are updated on the path of a request, at most once
// in an interval, and never by a goroutine.
type signals struct {
	seen     atomic.Int64                          // when they were last looked at
	accepts  [spillway.Criticalities]atomic.Uint32 // each a shed.Ratio
	degrader shed.Degrader

	mu    sync.Mutex // held by whoever looks
	last  time.Time
	ratio [spillway.Criticalities]shed.AcceptRatio
}

// lookEvery is how often the signals are looked at: often enough for a waiting
// queue that fills within tens of milliseconds, and seldom enough to cost a request
// nothing but the comparison of two times.
const lookEvery = 10 * time.Millisecond

// look observes how the shedder stands, if it is time to.
func (s *Server) look(st *settings, now time.Time) {
	g := &s.signals
	if passed := now.UnixNano() - g.seen.Load(); passed >= 0 && passed < int64(lookEvery) || !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	g.seen.Store(now.UnixNano())
	if now.Sub(g.last) < lookEvery {
		return
	}
	g.last = now
	stats := s.shed.Stats()
	p := shed.Pressure{Utilization: s.load.Utilization(now), Thresholds: st.config.Shed.Thresholds}
	if p.Thresholds == ([spillway.Criticalities]float64{}) {
		p.Thresholds = shed.DefaultThresholds
	}
	if places := stats.Depth * float64(st.processors); places > 0 {
		p.Fill = float64(stats.Waiting) / places
	}
	for i := range stats.Classes {
		p.Rejected[i] = stats.Classes[i].RefusedTotal
		p.Offered[i] = stats.Classes[i].AdmittedTotal + p.Rejected[i]
		g.accepts[i].Store(uint32(g.ratio[i].Observe(now, p.Offered[i], p.Rejected[i])))
	}
	g.degrader.Observe(now, p)
}

// Degradation returns how far answers to calls of a criticality should be degraded
// now. It is [spillway.DegradationNone] unless the shedder enforces. It allocates
// nothing and takes no lock. A handler gets the level that its request was admitted
// with from the context: [spillway.DegradationFrom].
func (s *Server) Degradation(c spillway.Criticality) spillway.DegradationLevel {
	level := s.signals.degrader.Level(c)
	if level > 0 && s.settings.Load().modes[shedGate] != spillway.Enforce {
		return spillway.DegradationNone
	}
	return level
}

// AcceptRatio returns, as a decimal number, the share of the calls of a criticality
// that this server has accepted recently, or nothing where that is about all of them.
// Adapters send it with each answer, so that clients that call rarely learn from the
// calls of others (Throttle.Advise in package throttle). Only refusals for overload by the
// shedder count. At the [Edge] it returns nothing: untrusted
// clients do not learn how loaded the server is. It allocates nothing.
func (s *Server) AcceptRatio(c spillway.Criticality) string {
	ratio := shed.Ratio(s.signals.accepts[c.Index()].Load())
	if ratio == shed.RatioOne {
		return ""
	}
	if st := s.settings.Load(); st.config.Trust.Boundary != Internal || st.modes[shedGate] != spillway.Enforce {
		return ""
	}
	return ratio.String()
}
