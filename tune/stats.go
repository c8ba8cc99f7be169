package tune

import (
	"math"
	"time"
)

// Stats is the state of a [Tuner], for a dashboard: the limit and its bounds, the signals, and the
// last moves with their reasons.
type Stats struct {
	Limit      float64 // the current limit
	Configured float64 // the limit of a fallback: Config.Limit
	Min, Max   float64
	Enforce    bool // false while the Tuner observes
	Rule       Rule
	// Fallback says that a signal is missing, so the limit returns to Configured, or has returned.
	Fallback bool
	// Used is how much of the limit is used, averaged, in its unit; NaN if it is unknown.
	Used    float64
	Signals []SignalStats
	// RaisedTotal and LoweredTotal count the moves of the limit since the start, including those of
	// a fallback.
	RaisedTotal, LoweredTotal uint64
	// Moves are the last 32 moves at most, oldest first, including moves that an observing Tuner
	// only reported. Show each with its Time and [Move.String].
	Moves []Move
}

// SignalStats is the state of a signal.
type SignalStats struct {
	Signal

	Value float64       // value of the last reading; NaN: unknown
	Age   time.Duration // time from when it was last known to the last reading
}

// Stats returns the state of t as of the last reading.
func (t *Tuner) Stats(now time.Time) Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.config
	s := Stats{
		Limit: t.limit, Configured: c.Limit, Min: c.Min, Max: c.Max, Enforce: c.Enforce, Rule: c.Rule,
		Fallback: t.lost, Used: t.used, RaisedTotal: t.raised, LoweredTotal: t.lowered, Moves: t.moves.list(),
	}
	for i, v := range t.signals {
		s.Signals = append(s.Signals, SignalStats{c.Signals[i], v.value, t.at - v.known})
	}
	return s
}

// Pressure returns the greatest ratio of a signal to its target, or 0 if none is known.
func (s *Stats) Pressure() (most float64) {
	for _, x := range s.Signals {
		if !math.IsNaN(x.Value) {
			most = max(most, x.Value/x.Target)
		}
	}
	return most
}
