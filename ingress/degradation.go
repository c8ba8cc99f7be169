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
	rejects  atomic.Bool                           // one of them is below 1
	degrader shed.Degrader

	mu    sync.Mutex // held by whoever looks
	last  time.Time
	ratio [spillway.Criticalities]shed.AcceptRatio
}

// lookEvery is how often the signals are looked at: often enough for a waiting
// queue that fills within tens of milliseconds, and seldom enough to cost a request
// nothing but the comparison of two times.
const lookEvery = 10 * time.Millisecond

// due reports whether it is time to look, also where a clock was set back.
func (g *signals) due(now time.Time) bool {
	return uint64(now.UnixNano()-g.seen.Load()) >= uint64(lookEvery)
}

// look observes how the shedder stands, unless another request is doing so.
func (s *Server) look(st *settings, now time.Time) {
	g := &s.signals
	if !g.mu.TryLock() {
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
	rejects := false
	for i := range stats.Classes {
		p.Rejected[i] = stats.Classes[i].RefusedTotal
		p.Offered[i] = stats.Classes[i].AdmittedTotal + p.Rejected[i]
		ratio := g.ratio[i].Observe(now, p.Offered[i], p.Rejected[i])
		g.accepts[i].Store(uint32(ratio))
		rejects = rejects || ratio != shed.RatioOne
	}
	g.rejects.Store(rejects)
	g.degrader.Observe(now, p)
}

// Degradation returns how far answers to calls of a criticality should be degraded
// now. It is [spillway.DegradationNone] unless the shedder enforces. It allocates
// nothing and takes no lock. A handler gets the level that its request was admitted
// with from the context: [spillway.DegradationFrom].
func (s *Server) Degradation(c spillway.Criticality) spillway.DegradationLevel {
	if s.signals.degrader.Idle() {
		return spillway.DegradationNone
	}
	return s.degradation(c)
}

func (s *Server) degradation(c spillway.Criticality) spillway.DegradationLevel {
	if s.settings.Load().modes[shedGate] != spillway.Enforce {
		return spillway.DegradationNone
	}
	return s.signals.degrader.Level(c)
}

// AcceptRatio returns, as a decimal number, the share of the calls of a criticality
// that this server has accepted recently, or nothing where that is about all of them.
// Adapters send it with each answer, so that clients that call rarely learn from the
// calls of others (Throttle.Advise in package throttle). Only refusals for overload by the
// shedder count. At the [Edge] it returns nothing: untrusted
// clients do not learn how loaded the server is. It allocates nothing.
func (s *Server) AcceptRatio(c spillway.Criticality) string {
	if !s.signals.rejects.Load() {
		return ""
	}
	return s.acceptRatio(c)
}

func (s *Server) acceptRatio(c spillway.Criticality) string {
	if st := s.settings.Load(); st.config.Trust.Boundary != Internal || st.modes[shedGate] != spillway.Enforce {
		return ""
	}
	return shed.Ratio(s.signals.accepts[c.Index()].Load()).String()
}
