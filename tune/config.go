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

// These are the rules. The first two are for [Config.Rule], and the others occur only in a [Move].
const (
	// AIMD raises by an amount and lowers by a share.
	AIMD Rule = iota
	// Proportional moves by how far the pressure is from 1.
	Proportional
	// Fallback returns to the configured limit because a signal is missing.
	Fallback
	// Resume follows the signals again because all are known. It does not change the limit.
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

// UnmarshalText implements [encoding.TextUnmarshaler] for the rules that [Config.Rule] can have.
func (r *Rule) UnmarshalText(text []byte) error {
	for _, rule := range []Rule{AIMD, Proportional} {
		if string(text) == rule.String() {
			*r = rule
			return nil
		}
	}
	return fmt.Errorf("tune: rule %.32q is not one of aimd, proportional", text)
}

// A Signal is a measured value that grows as the backend gets busier.
type Signal struct {
	// Name is the name of the signal in a [Move]. It must not be empty, and must be unique.
	Name string
	// Unit is the unit of the values, such as "ms" or "%", for [Move.String]. It may be empty.
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
	// Limit is the configured limit. The Tuner starts with it, keeps it while it observes, and
	// returns to it when signals are missing. It must be positive and at most 1e12.
	Limit float64
	// Min and Max bound the limit. If Min is too high, a backend that has lost most of its capacity
	// stays overloaded. If Max is too high, signals that do not show an overload do harm. Zero
	// means a tenth of Limit (at least 1 if Whole) and ten times Limit (at most 1e12). They must be
	// positive, with Limit between them.
	Min, Max float64
	// Whole says that the limit is a whole number, such as a number of requests in flight. Limit,
	// Min and Max must then be whole, and each step is at least 1.
	Whole bool

	// Signals are the inputs of the Tuner, 1 to 16.
	Signals []Signal

	// Rule says how the limit moves: AIMD, the default, or Proportional. Proportional moves in
	// proportion to the value of a signal, which suits a utilization. AIMD only checks whether the
	// value is too high.
	Rule Rule
	// Increase is the first step upwards, as a share of the ceiling, of Limit while there is no
	// ceiling, or of half of the current limit if that is more. Below the ceiling all steps have
	// this size. A greater one finds new capacity sooner and overshoots by more. Zero means 0.02;
	// it must be at most MaxStep.
	Increase float64
	// Decrease is the share of the limit by which AIMD lowers it at first, and the share of the
	// capacity by which both rules go below the capacity at least. A greater one empties a queue
	// sooner and leaves more of the capacity unused. Zero means 0.05; it must be at most MaxStep.
	Decrease float64
	// Gain is the maximum share of the distance to the target that one move of Proportional covers.
	// Zero means 0.25; it must be at most 1.
	Gain float64
	// Deadband is the distance of the pressure from 1 up to which the limit does not move. A
	// greater one moves it less often. Zero means 0.1, negative means none; it must be below 1.
	Deadband float64

	// MaxStep is the maximum change by one move, as a share of the limit. Zero means 0.3; it must
	// be at most 0.9.
	MaxStep float64
	// MaxDelta is the maximum change by one move, in the unit of the limit. Zero means that only
	// MaxStep bounds it.
	MaxDelta float64
	// Reaction is the minimum time between two moves. The effect of one must be measured before the
	// next. Zero means 500 ms; it must be 1 ms to 1 h.
	Reaction time.Duration
	// Persist is the time for which a condition must hold before it moves the limit. Zero means
	// half of Reaction, negative means that one reading is enough; it must be at most 1 h.
	Persist time.Duration
	// Stale is the time for which a signal may be unknown before the limit returns to the
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

// atLeastOne returns v, or for a whole limit v rounded down, and at least 1.
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
