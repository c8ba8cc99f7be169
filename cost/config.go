package cost

import (
	"math/rand/v2"
	"time"

	"github.com/seed90641741/spillway/internal/cputime"
	"github.com/seed90641741/spillway/internal/invalid"
)

// Config configures an [Estimator]. The zero Config is ready for use.
type Config struct {
	// CPU returns the processor time that the process has used since its start. The Estimator calls
	// it once per interval, on the path of a call and under its lock, so it must be quick. After an
	// error, the interval is ignored. Nil means the time that the operating system reports (Unix
	// only).
	CPU func() (time.Duration, error)

	// Interval is the minimum length of an interval. In a longer interval, fewer calls begin in one
	// and end in another, so errors are smaller; a shorter one learns earlier. Zero means 1 s; it
	// must be 50 ms to 1 min.
	Interval time.Duration

	// MaxKeys is the maximum number of customers or routes whose cost is learned by comparison. At
	// least half of them are for customers that are known by name and for routes. A key is replaced
	// by a new one after 10 minutes without calls, or after 1 minute if its customer is not known
	// by name. An interval takes time in proportion to the square of MaxKeys: 5 µs for 32. Zero
	// means 32; it must be 1 to 128.
	MaxKeys int

	// Unit is the processor time of one unit of cost. Zero means 1 ms, so that a quota of 1000 per
	// second is one processor; it must be 1 µs to 1 min.
	Unit time.Duration

	// MaxError is the highest relative standard error with which a cost is used. With a higher
	// value costs are used earlier, and are less exact. Zero means 0.3; it must be 0.01 to 1.
	MaxError float64

	// Rand returns a number in [0, 1), and is safe for concurrent use. It chooses which calls are
	// measured. Nil means [rand.Float64].
	Rand func() float64
}

// withDefaults returns c with defaults for its zero fields, or an error that names the first bad
// field.
func (c Config) withDefaults() (Config, error) {
	if c.CPU == nil {
		c.CPU = cputime.Process
	}
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = 32
	}
	if c.Unit == 0 {
		c.Unit = time.Millisecond
	}
	if c.MaxError == 0 {
		c.MaxError = 0.3
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	switch {
	case c.Interval < 50*time.Millisecond || c.Interval > time.Minute:
		return c, invalid.Field("cost", "Interval", c.Interval, "50ms to 1m")
	case c.MaxKeys < 1 || c.MaxKeys > 128:
		return c, invalid.Field("cost", "MaxKeys", c.MaxKeys, "1 to 128")
	case c.Unit < time.Microsecond || c.Unit > time.Minute:
		return c, invalid.Field("cost", "Unit", c.Unit, "1µs to 1m")
	case !(c.MaxError >= 0.01 && c.MaxError <= 1):
		return c, invalid.Field("cost", "MaxError", c.MaxError, "0.01 to 1")
	}
	return c, nil
}
