package concurrency

import (
	"maps"
	"math"

	"github.com/seed90641741/spillway/internal/invalid"
)

// Config configures a [Limiter]. The zero Config is ready for use.
type Config struct {
	// MinInFlight is the lowest limit that is learnt, for a key and for all keys together. Zero means
	// 1; the range is 1 to 1,000,000.
	MinInFlight int
	// MaxInFlight is the highest number of requests in flight in all keys together, even if no queue
	// was found. Zero and negative values mean no such limit; otherwise it must be at least
	// MinInFlight.
	MaxInFlight int
	// MaxInFlightByKey is the highest number of requests in flight for single keys, for example to cap
	// streams apart from quick calls. Parked requests count, suspended ones do not. Each of these keys
	// has its own limit, and does not count as one of MaxKeys. Nil means no such limit; each value
	// must be at least 1.
	MaxInFlightByKey map[string]int
	// Fixed turns learning off: the limit is MaxInFlight, and MaxInFlightByKey for single keys.
	// Requests above the limit start in the order of the caller's waiting queue.
	Fixed bool
	// MaxKeys is how many keys have their own limit. All further keys share one. Zero means 64; the
	// range is 1 to 4096. A key takes about 1,000 bytes.
	MaxKeys int
}

func (c Config) withDefaults() (Config, error) {
	if c.MinInFlight == 0 {
		c.MinInFlight = 1
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = 64
	}
	switch {
	case c.MinInFlight < 1 || c.MinInFlight > 1e6:
		return c, invalid.Field("concurrency", "MinInFlight", c.MinInFlight, "1 to 1000000")
	case c.MaxInFlight > 0 && c.MaxInFlight < c.MinInFlight:
		return c, invalid.Field("concurrency", "MaxInFlight", c.MaxInFlight, "at least MinInFlight (%d)", c.MinInFlight)
	case c.MaxKeys < 1 || c.MaxKeys > mostKeys:
		return c, invalid.Field("concurrency", "MaxKeys", c.MaxKeys, "1 to %d", mostKeys)
	}
	c.MaxInFlightByKey = maps.Clone(c.MaxInFlightByKey)
	return c, c.checkCaps()
}

// most returns MaxInFlight; +Inf means no such limit.
func (c *Config) most() float64 {
	if c.MaxInFlight <= 0 {
		return math.Inf(1)
	}
	return float64(c.MaxInFlight)
}
