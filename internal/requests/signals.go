package requests

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/degradation"
	"github.com/seed90641741/spillway/shed"
)

// signals are what a Core reports of its load: levels of degradation to handlers, accept ratios to
// clients. They are updated on the path of a request, at most once in refreshEvery.
type signals struct {
	seen     atomic.Int64                          // when they were last updated, in Unix nanoseconds
	accepts  [spillway.Criticalities]atomic.Uint32 // each a shed.Ratio
	rejects  atomic.Bool                           // one of accepts is below 1
	degrader degradation.Degrader

	mu    sync.Mutex // held during an update; guards the fields below
	last  time.Time
	ratio [gates][spillway.Criticalities]shed.AcceptRatio // the rate limit has the same one for all classes, the first
}

// refreshEvery is the interval of the signals: short enough for a waiting queue that fills within
// tens of milliseconds, and long enough to cost a request nothing but the comparison of two
// times.
const refreshEvery = 10 * time.Millisecond

// due reports whether the interval is over. It is, too, if the clock was set back.
func (g *signals) due(now time.Time) bool {
	return uint64(now.UnixNano()-g.seen.Load()) >= uint64(refreshEvery)
}

// refresh updates the signals from the policies and the state of the process, unless another
// request is doing so.
func (g *signals) refresh(st *settings, now time.Time, stateAt func(time.Time) shed.State) {
	if !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	g.seen.Store(now.UnixNano())
	if now.Sub(g.last) < refreshEvery {
		return
	}
	g.last = now
	stats, state := st.shedders[shedGate].deciding().Stats(now), stateAt(now)
	p := degradation.Pressure{Utilization: state.Utilization, Thresholds: cmp.Or(st.config.Shed.Thresholds, shed.DefaultThresholds)}
	p.Fill = float64(stats.Waiting) / stats.Depth
	share := g.shares(st, now)
	rejects := false
	for i := range stats.Classes {
		p.Rejected[i] = stats.Classes[i].RejectedTotal - stats.Classes[i].LateTotal // which any client can cause
		p.Offered[i] = stats.Classes[i].AdmittedTotal + p.Rejected[i]
		g.ratio[shedGate][i].Observe(now, p.Offered[i], p.Rejected[i])
		if st.modes[shedGate] == spillway.ModeEnforce {
			share[i] *= g.ratio[shedGate][i].Share()
		}
		ratio := shed.RatioOf(share[i])
		g.accepts[i].Store(uint32(ratio))
		rejects = rejects || ratio != shed.RatioOne
	}
	g.rejects.Store(rejects)
	g.degrader.Observe(now, p)
}

// shares returns, for each class, the share of the calls that pass the gates in front of the
// shedder. Only gates that enforce count. As a call passes one gate after the other, their shares
// are multiplied. The quota does not count, as it concerns one customer. The caller holds g.mu.
func (g *signals) shares(st *settings, now time.Time) (share [spillway.Criticalities]float64) {
	limit := 1.
	if st.modes[limitGate] == spillway.ModeEnforce {
		s, r := st.limiter.Stats(now), &g.ratio[limitGate][0]
		r.Observe(now, s.AdmittedTotal+s.RejectedTotal, s.RejectedTotal)
		limit = r.Share()
	}
	flight := st.modes[flightGate] == spillway.ModeEnforce
	var stats shed.Stats
	if flight {
		stats = st.shedders[flightGate].Stats(now)
	}
	for i := range share {
		share[i] = limit
		if flight {
			c, r := &stats.Classes[i], &g.ratio[flightGate][i]
			rejected := c.RejectedTotal - c.LateTotal
			r.Observe(now, c.AdmittedTotal+rejected, rejected)
			share[i] *= r.Share()
		}
	}
	return share
}

// acceptRatio returns which share of the calls of a criticality was accepted recently, or
// [shed.RatioOne] if clients must not learn it.
func (g *signals) acceptRatio(st *settings, class spillway.Criticality) shed.Ratio {
	if !st.config.Internal && !st.config.AcceptRatio {
		return shed.RatioOne
	}
	return shed.Ratio(g.accepts[class.Index()].Load())
}
