package sim

import (
	"slices"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
)

// A checker keeps the first error.
type checker struct {
	err            error
	callers, tasks int // so far
}

// mustf reports the value of a field as wrong unless good. The format and args say what it must be.
func (c *checker) mustf(good bool, field string, value any, format string, args ...any) {
	if !good && c.err == nil {
		c.err = invalid.Field("sim", field, value, format, args...)
	}
}

func (c *checker) time(field string, d time.Duration) {
	c.mustf(d >= 0 && d <= maxTime, field, d, "0 to a year")
}

func (c *checker) count(field string, n, most int) {
	c.mustf(n >= 0 && n <= most, field, n, "0 to %d", most)
}

func (c *checker) number(field string, v float64) {
	c.mustf(v >= 0 && v <= 1e9, field, v, "0 to 1e9")
}

func (c *checker) dist(field string, d Dist) {
	allowed := d.wrong()
	c.mustf(allowed == "", field, d, "%s", allowed)
}

// policy takes an error of the constructor of a policy or a stack, which has its
// configuration in field.
func (c *checker) policy(field string, err error) {
	if c.err == nil {
		c.err = invalid.In("sim", field, err)
	}
}

// unset checks that a field is nil for which the simulator has its own value.
func (c *checker) unset(isNil bool, field string) {
	c.mustf(isNil, field, struct{}{}, "nil: the simulator sets it")
}

func (c *checker) enforces(field string, m spillway.Mode) {
	c.mustf(m != spillway.ModeObserve, field, m, "enforce or off: results have what gates do, not what they would do")
}

// word checks that a word is one of those allowed.
func (c *checker) word(field string, word any, allowed ...any) {
	c.mustf(slices.Contains(allowed, word), field, word, "one of %v", allowed)
}
