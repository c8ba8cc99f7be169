package concurrency

import (
	"maps"
	"math"

	"github.com/seed90641741/spillway/internal/invalid"
)

// Config configures a [Limiter]. The zero Config is ready for use.
type Config struct {
	// Min is the lowest limit that is learnt, for a key and for all keys together. Zero means 1;
	// the range is 1 to 1,000,000.
	Min int
	// Max is the highest number of requests in flight in all keys together, even if no queue was
	// found. Zero and negative values mean no such limit; otherwise it must be at least Min.
	Max int
	// MaxByKey is the highest number of requests in flight for single keys, for example to cap
	// streams apart from quick calls. Parked requests count, suspended ones do not. Each key in
	// MaxByKey has its own limit, in addition to Keys. Nil means no such limit; each value must be
	// at least 1.
	MaxByKey map[string]int
	// Fixed turns learning off: the limit is Max, and MaxByKey for single keys. Requests above the
	// limit start in the order of the caller's waiting queue.
	Fixed bool
	// Keys is how many keys have their own limit. All further keys share one. Zero means 64; the
	// range is 1 to 4096. A key takes about 1,000 bytes.
	Keys int
}

func (c Config) withDefaults() (Config, error) {
	if c.Min == 0 {
		c.Min = 1
	}
	if c.Keys == 0 {
		c.Keys = 64
	}
	switch {
	case c.Min < 1 || c.Min > 1e6:
		return c, invalid.Field("concurrency", "Min", c.Min, "1 to 1000000")
	case c.Max > 0 && c.Max < c.Min:
		return c, invalid.Field("concurrency", "Max", c.Max, "at least Min (%d)", c.Min)
	case c.Keys < 1 || c.Keys > mostKeys:
		return c, invalid.Field("concurrency", "Keys", c.Keys, "1 to %d", mostKeys)
	}
	c.MaxByKey = maps.Clone(c.MaxByKey)
	return c, c.checkCaps()
}

func (c *Config) most() float64 {
	if c.Max <= 0 {
		return math.Inf(1)
	}
	return float64(c.Max)
}
