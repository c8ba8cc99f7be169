package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

// A Rule is how a limit is moved, or why.
type Rule uint8

// The rules. The first two are for [Config.Rule]; the others are found in a [Move].
const (
	// AIMD raises by an amount and lowers by a share.
	AIMD Rule = iota
	// Proportional moves by how far the pressure is from 1.
	Proportional
	// Fallback goes back to the configured limit, as a signal is missing.
	Fallback
	// Resume follows the signals again, since all are known. It moves nothing.
	Resume
)

var ruleNames = [...]string{"aimd", "proportional", "fallback", "resume"}

// String returns the text form: aimd, proportional, fallback or resume.
func (r Rule) String() string {
	if int(r) >= len(ruleNames) {
		return fmt.Sprintf("Rule(%d)", uint8(r))
	}
	return ruleNames[r]
}

// MarshalText implements [encoding.TextMarshaler].
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler] for what [Config.Rule] can be.
func (r *Rule) UnmarshalText(text []byte) error {
	for _, rule := range []Rule{AIMD, Proportional} {
		if string(text) == rule.String() {
			*r = rule
			return nil
		}
	}
	return fmt.Errorf("tune: rule %.32q is not one of aimd, proportional", text)
}

// A Signal is something that grows as the backend gets busier.
type Signal struct {
	// Name is what a [Move] calls it. It must not be empty, nor that of another one.
	Name string
	// Unit is put behind its values in words, if there is one: "ms", "%".
	Unit string
	// Target is the value at which the limit is right. It must be positive.
	Target float64
}

const (
	most       = 1e12 // as a limit
	maxSignals = 16
	usable     = 0.95 // share of a limit that must be used before it is raised
)

// Config configures a [Tuner]. Limit and Signals must be given.
type Config struct {
	// Limit is the limit as configured: where the Tuner begins, where it stays
	// while it observes, and where it goes back to when its signals are missing. It
	// must be positive and at most 1e12.
	Limit float64
	// Min and Max bound the limit. A Min that is too high leaves a backend overloaded
	// that has lost most of its capacity; a Max that is too high lets signals that
	// see too little do harm. Zero means a tenth of Limit (1 at least where it is
	// Whole) and ten times Limit (1e12 at most). They must be positive, with Limit between them.
	Min, Max float64
	// Whole says that a limit is a whole number, such as one of requests in flight.
	// Limit, Min and Max must then be whole, and each step is at least 1.
	Whole bool

	// Signals are the inputs of the Tuner, 1 to 16.
	Signals []Signal

	// Rule says how the limit moves: AIMD, the default, or Proportional. Proportional moves in
	// proportion to the value of a signal, as is right for a utilization; AIMD only checks
	// whether the value is too high.
	Rule Rule
	// Increase is the first step of AIMD upwards, and the most that either rule
	// raises below the ceiling, as a share of the ceiling, or of Limit while there is
	// none, and of half of the limit at least. More finds new capacity sooner and overshoots by more. Zero means 0.02; it
	// must be at most MaxStep.
	Increase float64
	// Decrease is by which share AIMD lowers at first, and how far below the capacity
	// either rule goes at least. More empties a queue sooner and leaves more of the
	// capacity unused. Zero means 0.05; it must be at most MaxStep.
	Decrease float64
	// Gain is how much of the distance to the target a move of Proportional makes at
	// most. Zero means 0.25; it must be at most 1.
	Gain float64
	// Deadband is how far the pressure may be from 1 without a move. A wider one moves
	// less often. Zero means 0.1, negative means none; it must be below 1.
	Deadband float64

	// MaxStep is the greatest share of the limit that one move changes. Zero means
	// 0.3; it must be at most 0.9.
	MaxStep float64
	// MaxDelta is the most that one move changes, in the unit of the limit. Zero means
	// no bound but MaxStep.
	MaxDelta float64
	// Reaction is the least time between two moves: the effect of one must be seen
	// before the next. Zero means 500 ms; it must be 1 ms to 1 h.
	Reaction time.Duration
	// Persist is how long a condition must hold before it moves the limit. Zero means
	// half of Reaction, negative means that one reading is enough; it must be at most
	// 1 h.
	Persist time.Duration
	// Stale is for how long a signal may be unknown before the limit goes back to the
	// configured one. Zero means ten times Reaction; it must be 1 ms to 24 h.
	Stale time.Duration

	// Enforce makes the moves count. The default is to observe.
	Enforce bool
}

func (c Config) withDefaults() (Config, error) {
	c.Min = cmp.Or(c.Min, c.atLeastOne(c.Limit/10))
	c.Max = cmp.Or(c.Max, min(c.Limit*10, most))
	c.Increase = cmp.Or(c.Increase, 0.02)
	c.Decrease = cmp.Or(c.Decrease, 0.05)
	c.Gain = cmp.Or(c.Gain, 0.25)
	c.Deadband = max(0, cmp.Or(c.Deadband, 0.1)) // NaN stays, and is found
	c.MaxStep = cmp.Or(c.MaxStep, 0.3)
	c.MaxDelta = cmp.Or(c.MaxDelta, most)
	c.Reaction = cmp.Or(c.Reaction, 500*time.Millisecond)
	c.Persist = max(0, cmp.Or(c.Persist, c.Reaction/2))
	c.Stale = cmp.Or(c.Stale, 10*c.Reaction)
	c.Signals = slices.Clone(c.Signals)
	return c, c.validate()
}

// atLeastOne is v where the limit is not whole, else the whole number below it.
func (c *Config) atLeastOne(v float64) float64 {
	if !c.Whole {
		return v
	}
	return max(1, math.Floor(v))
}

func (c *Config) validate() error {
	for _, f := range []struct {
		name          string
		value, lo, hi float64
		above         bool // lo itself is out of range
	}{
		{"Limit", c.Limit, 0, most, true},
		{"Min", c.Min, 0, c.Limit, true},
		{"Max", c.Max, c.Limit, most, false},
		{"MaxStep", c.MaxStep, 0, 0.9, true},
		{"Increase", c.Increase, 0, c.MaxStep, true},
		{"Decrease", c.Decrease, 0, c.MaxStep, true},
		{"Gain", c.Gain, 0, 1, true},
		{"Deadband", c.Deadband, 0, 0.99, false},
		{"MaxDelta", c.MaxDelta, 0, most, true},
	} {
		if !(f.value >= f.lo && f.value <= f.hi) || f.above && f.value == f.lo {
			return invalid.Field("tune", f.name, f.value, "%s", between(f.lo, f.hi, f.above))
		}
	}
	if c.Rule > Proportional {
		return invalid.Field("tune", "Rule", int(c.Rule), "AIMD or Proportional")
	}
	if err := c.validateWhole(); err != nil {
		return err
	}
	if err := c.validateTimes(); err != nil {
		return err
	}
	return c.validateSignals()
}

func between(lo, hi float64, above bool) string {
	if above {
		return fmt.Sprintf("above %v and at most %v", lo, hi)
	}
	return fmt.Sprintf("%v to %v", lo, hi)
}

func (c *Config) validateWhole() error {
	if !c.Whole {
		return nil
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"Limit", c.Limit}, {"Min", c.Min}, {"Max", c.Max}} {
		if f.value != math.Trunc(f.value) {
			return invalid.Field("tune", f.name, f.value, "a whole number")
		}
	}
	if c.MaxDelta < 1 {
		return invalid.Field("tune", "MaxDelta", c.MaxDelta, "1 or more for a whole number")
	}
	return nil
}

func (c *Config) validateTimes() error {
	const ms, hour = time.Millisecond, time.Hour
	for _, f := range []struct {
		name          string
		value, lo, hi time.Duration
	}{{"Reaction", c.Reaction, ms, hour}, {"Persist", c.Persist, 0, hour}, {"Stale", c.Stale, ms, 24 * hour}} {
		if f.value < f.lo || f.value > f.hi {
			return invalid.Field("tune", f.name, f.value, "%v to %v", f.lo, f.hi)
		}
	}
	return nil
}

func (c *Config) validateSignals() error {
	if n := len(c.Signals); n < 1 || n > maxSignals {
		return invalid.Field("tune", "Signals", n, "1 to %d signals", maxSignals)
	}
	for i, s := range c.Signals {
		same := func(o Signal) bool { return o.Name == s.Name }
		switch {
		case s.Name == "":
			return invalid.Field("tune", fmt.Sprintf("Signals[%d].Name", i), "", "a name")
		case slices.ContainsFunc(c.Signals[:i], same):
			return invalid.Field("tune", fmt.Sprintf("Signals[%d].Name", i), s.Name, "different from the others")
		case !(s.Target > 0 && s.Target <= most):
			return invalid.Field("tune", fmt.Sprintf("Signals[%d].Target", i), s.Target, "above 0 and at most %v", float64(most))
		}
	}
	return nil
}
