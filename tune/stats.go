package tune

import (
	"math"
	"time"
)

// Stats says how a [Tuner] stands. It is made for a dashboard: how the limit stands
// between its bounds, by which signals, and what the last moves were, with reasons.
type Stats struct {
	Limit      float64 // in force
	Configured float64 // where it goes back to
	Min, Max   float64
	Enforce    bool // else it observes
	Rule       Rule
	// Fallback says that a signal is missing, and the limit on its way to the
	// configured one, or there.
	Fallback bool
	// Used is how much of the limit is used, averaged; NaN: not known.
	Used    float64
	Signals []SignalStats
	// Raised and Lowered count the moves that were made, the moves of a fallback
	// included.
	RaisedTotal, LoweredTotal uint64
	// Moves are the last ones, at most 32, oldest first, the moves that were only reported
	// included. Show each with its Time and [Move.String].
	Moves []Move
}

// SignalStats says how a signal stands.
type SignalStats struct {
	Signal

	Value float64       // NaN: not known
	Age   time.Duration // since it was last known, at the last reading
}

// Stats returns what is known since the last reading.
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

// Pressure returns the greatest share that a signal has of its target, 0 if none is
// known.
func (s *Stats) Pressure() (most float64) {
	for _, x := range s.Signals {
		if !math.IsNaN(x.Value) {
			most = max(most, x.Value/x.Target)
		}
	}
	return most
}
