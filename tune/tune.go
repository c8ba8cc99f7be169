package tune

import (
	"math"
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/elapsed"
)

// A Tuner moves one limit. It is safe for concurrent use and must not be copied;
// make one with [New].
type Tuner struct {
	mu     sync.Mutex
	config Config
	limit  float64

	clock   elapsed.Clock
	at      time.Duration // time of the last reading
	moved   time.Duration // when the limit was last moved
	hasLast bool          // whether there was a move

	signals  []signal
	used     float64 // use of the limit, averaged; NaN: unknown
	readings int     // number of readings in used
	trend    trend
	lost     bool          // whether a signal is missing, and the limit returns to Config.Limit
	seen     time.Duration // while lost: since when all signals are known

	row     int     // number of moves in one direction; each makes the next step grow
	up      bool    // whether these moves went up
	ceiling float64 // capacity when the limit was last lowered; 0: unknown
	said    intention

	raised, lowered uint64
	moves           ring
}

// A signal is the last value of a [Signal].
type signal struct {
	value float64       // value of the last reading; NaN: unknown
	known time.Duration // when it was last known
}

// A direction is the direction in which the pressure moves the limit.
type direction int8

const (
	stay direction = iota
	down
	up
)

// A trend is a direction that the pressure has had since a time.
type trend struct {
	direction
	since   time.Duration
	mildest float64 // the pressure of that time that is closest to 1
}

// An intention is the move that an observing Tuner has reported last.
type intention struct {
	direction
	signal int
	at     time.Duration
}

// repeat is the time for which an observing Tuner does not repeat a report.
const repeat = time.Minute

// New returns a Tuner whose limit is the configured one, or an error that names the
// field of c that is out of range.
func New(c Config) (*Tuner, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Tuner{config: c, limit: c.Limit, signals: unknown(len(c.Signals), 0), used: math.NaN()}, nil
}

// unknown returns n signals that are unknown since a time.
func unknown(n int, at time.Duration) []signal {
	all := make([]signal, n)
	for i := range all {
		all[i] = signal{math.NaN(), at}
	}
	return all
}

// Update changes the configuration of a Tuner in use, or returns an error that names the field that
// is out of range and changes nothing. The limit stays where it is, as far as the new bounds allow;
// it becomes the configured one if that has changed, or if the Tuner observes. The caller then sets
// the limit to [Tuner.Limit]. The values of the signals are forgotten, and each has the time Stale
// to become known.
func (t *Tuner) Update(c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit = min(max(t.limit, c.Min), c.Max)
	if c.Limit != t.config.Limit || !c.Enforce || c.Whole && t.limit != math.Trunc(t.limit) {
		t.limit = c.Limit
	}
	t.config, t.signals, t.used = c, unknown(len(c.Signals), t.at), math.NaN()
	t.trend, t.lost, t.row, t.ceiling, t.said = trend{}, false, 0, 0, intention{}
	t.readings = 0
	return nil
}

// Limit returns the limit that the caller should set.
func (t *Tuner) Limit() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.limit
}

// Read takes a reading at the time now, and returns a [Move] and true if there is one. If its
// Applied is set and From is not To, the caller sets the limit to To. used is the use of the
// limit since the last reading, in its unit: for a rate the requests that the backend answered
// per second; for an in-flight limit the maximum in flight, which is the limit itself if it
// has rejected any. values are the values of [Config.Signals], in their order; NaN, a missing,
// an infinite or a negative value means unknown. Read is to be called a few times per
// Reaction. It allocates nothing.
func (t *Tuner) Read(now time.Time, used float64, values ...float64) (Move, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	passed := t.see(now)
	t.use(passed, used)
	for i := range t.signals {
		t.signals[i].value = math.NaN()
		if i < len(values) && isKnown(values[i]) {
			t.signals[i] = signal{values[i], t.at}
		}
	}
	if i, missing := t.missing(); missing {
		return t.fallBack(i)
	}
	if t.lost {
		return t.resume()
	}
	pressure, worst, all := t.pressure()
	t.follow(pressure, all)
	if t.trend.direction == stay || !t.ready(t.trend.since) {
		return Move{}, false
	}
	return t.decide(worst)
}

// isKnown reports whether v is a value that a signal can have.
func isKnown(v float64) bool { return v >= 0 && v <= math.MaxFloat64 }

// see sets the time of a reading, and returns the time since the last one. If the clock was set
// back, no time has passed.
func (t *Tuner) see(now time.Time) (passed time.Duration) {
	before := t.at
	t.at = t.clock.See(now)
	return t.at - before
}

// use adds a reading of the use to the average: the mean since the last move, or, if that was long
// ago, an exponential average over four times Reaction.
func (t *Tuner) use(passed time.Duration, used float64) {
	if !isKnown(used) {
		t.used, t.readings = math.NaN(), 0
		return
	}
	t.readings++
	share := elapsed.Weight(passed, 4*t.config.Reaction)
	if share = max(share, 1/float64(t.readings)); t.readings == 1 {
		t.used = used
	}
	t.used += (used - t.used) * share
}

// missing returns the index of a signal that was unknown for Stale, and whether there is one.
func (t *Tuner) missing() (int, bool) {
	for i, s := range t.signals {
		if t.at-s.known >= t.config.Stale {
			return i, true
		}
	}
	return 0, false
}

// pressure returns the greatest ratio of a signal to its target, the index of that signal, and
// whether all signals are known.
func (t *Tuner) pressure() (pressure float64, worst int, all bool) {
	all = true
	for i, s := range t.signals {
		if math.IsNaN(s.value) {
			all = false
		} else if p := s.value / t.config.Signals[i].Target; p > pressure {
			pressure, worst = p, i
		}
	}
	return pressure, worst, all
}

// follow updates the trend with a pressure. all says whether all signals are known; otherwise the
// limit must not rise.
func (t *Tuner) follow(pressure float64, all bool) {
	to := stay
	switch {
	case pressure > 1+t.config.Deadband:
		to = down
	case all && pressure < 1-t.config.Deadband && t.used >= usable*t.limit: // false for NaN
		to = up
	}
	switch {
	case to != t.trend.direction:
		t.trend = trend{to, t.at, pressure}
	case to == down:
		t.trend.mildest = min(t.trend.mildest, pressure)
	case to == up:
		t.trend.mildest = max(t.trend.mildest, pressure)
	}
}

// ready reports whether a condition that holds since a time may move the limit now.
func (t *Tuner) ready(since time.Duration) bool {
	return t.at-since >= t.config.Persist && t.rested()
}

// rested reports whether the last move is at least Reaction ago.
func (t *Tuner) rested() bool { return !t.hasLast || t.at-t.moved >= t.config.Reaction }
