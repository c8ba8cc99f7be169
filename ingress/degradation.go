package ingress

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/shed"
)

// signals are what a Server tells others of how it stands: handlers, by levels of
// degradation, and clients, by accept ratios. They are looked at on the path of a
// request, at most once in an interval, and never by a goroutine.
type signals struct {
	seen     atomic.Int64 // when they were last looked at
	accepts  [spillway.Criticalities]atomic.Uint32
	degrader shed.Degrader

	mu    sync.Mutex // held by whoever looks
	last  time.Time
	ratio [spillway.Criticalities]acceptRatio
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
		g.accepts[i].Store(g.ratio[i].observe(now, p.Offered[i], p.Rejected[i]))
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
// that this server has accepted of late, or nothing where that is about all of them.
// Adapters send it with each answer, so that clients that call rarely learn from the
// calls of others (Throttle.Advise in package throttle). Only refusals for overload by the
// shedder count. At the [Edge] it returns nothing: how a server stands is not told
// to strangers. It allocates nothing.
func (s *Server) AcceptRatio(c spillway.Criticality) string {
	step := s.signals.accepts[c.Index()].Load()
	if step == 0 {
		return ""
	}
	if st := s.settings.Load(); st.config.Trust.Boundary != Internal || st.modes[shedGate] != spillway.Enforce {
		return ""
	}
	return acceptSteps[step].text
}

// acceptSteps are the ratios that are told. They are coarse, so that there is one
// text for each; a ratio is rounded up, so that no client is told to send less than
// is accepted. The first stands for all that is nearly 1 and is never told.
var acceptSteps = [...]struct {
	text  string
	ratio float64
}{
	{"", 1}, {"0.9", 0.9}, {"0.8", 0.8}, {"0.7", 0.7}, {"0.6", 0.6}, {"0.5", 0.5}, {"0.4", 0.4}, {"0.3", 0.3},
	{"0.2", 0.2}, {"0.15", 0.15}, {"0.1", 0.1}, {"0.07", 0.07}, {"0.05", 0.05}, {"0.03", 0.03}, {"0.02", 0.02}, {"0.01", 0.01}, {"0", 0},
}

// acceptRatio counts offered and accepted calls, which it forgets exponentially.
type acceptRatio struct {
	offered, rejected float64
	seenOffered       uint64
	seenRejected      uint64
	last              time.Time
}

const (
	// acceptMemory is the time constant: longer than the waves in which a queue
	// fills and drains, and shorter than the seconds in which busy clients notice a
	// recovery.
	acceptMemory = 5 * time.Second
	// acceptEvidence is how many calls a ratio must be made of.
	acceptEvidence = 10
)

// observe takes in the totals at the time now, and returns the step to tell.
func (a *acceptRatio) observe(now time.Time, offered, rejected uint64) (step uint32) {
	if d := now.Sub(a.last); d > 0 {
		keep := math.Exp(-float64(d) / float64(acceptMemory))
		a.offered, a.rejected = float64(a.offered*keep), float64(a.rejected*keep)
		a.last = now
	}
	a.offered += float64(offered - a.seenOffered)
	a.rejected += float64(rejected - a.seenRejected)
	a.seenOffered, a.seenRejected = offered, rejected
	if a.offered < acceptEvidence {
		return 0
	}
	ratio := 1 - a.rejected/a.offered
	for step = uint32(len(acceptSteps) - 1); step > 0; step-- {
		if ratio <= acceptSteps[step].ratio+1e-9 {
			return step
		}
	}
	return 0
}
