package ratelimit

import (
	"math"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

const (
	maxRate = 1e6     // so that a token takes a microsecond or more
	day     = 86400.0 // seconds; no burst and no wait is longer
)

// Config configures a [Limiter]. The zero Config lets everything in.
type Config struct {
	// Rate is how many are let in per second in the long run. Zero and negative
	// mean no limit; otherwise it must be 1/86400 (one a day) to 1e6. It is kept
	// as the time between two, rounded up to whole nanoseconds, so it is exact to
	// a tenth of a percent at 1e6 and better below.
	Rate float64

	// BurstSeconds is how many seconds' worth of Rate an idle limiter saves up.
	// More lets bursts pass that the server may not be able to take; less rejects
	// when arrivals are merely uneven. Zero means 1, or what makes one token if
	// that is more. It must be at least 1/Rate and at most 86400.
	BurstSeconds float64

	// QueueDepth is how many may wait for a token at once. Zero means none: what
	// finds no token is rejected. It must not be negative, and the last in the
	// queue must not have to wait for more than a day. Prefer a queue where a
	// rejection costs the caller more than a wait, as for connections.
	QueueDepth int

	// Exempt says who takes no token. The zero Exempt matches no caller.
	Exempt Exempt
}

// terms returns c in the units of the bucket, or an error that names the first
// bad field.
func (c Config) terms() (*terms, error) {
	c.Rate = max(c.Rate, 0)
	if c.BurstSeconds == 0 {
		c.BurstSeconds = 1
		if c.Rate > 0 {
			c.BurstSeconds = max(1, 1/c.Rate)
		}
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	t := &terms{burst: math.MaxInt64, depth: c.QueueDepth, exempt: c.Exempt.clone()}
	if c.Rate > 0 {
		interval := math.Ceil(1e9/c.Rate - 1e-6) // 1e9/Rate may miss a whole number by a rounding
		t.interval = time.Duration(interval)
		t.burst = time.Duration(math.Round(c.Rate * c.BurstSeconds * interval))
	}
	t.makeRejections(c.Rate)
	return t, nil
}

func (c Config) validate() error {
	switch {
	case !(c.Rate == 0 || c.Rate >= 1/day && c.Rate <= maxRate):
		return invalid.Field("ratelimit", "Rate", c.Rate, "1/86400 to 1e6 per second, or negative for no limit")
	case !(c.BurstSeconds > 0 && c.BurstSeconds <= day):
		return invalid.Field("ratelimit", "BurstSeconds", c.BurstSeconds, "above 0 and at most 86400")
	case c.Rate > 0 && c.BurstSeconds < 1/c.Rate:
		return invalid.Field("ratelimit", "BurstSeconds", c.BurstSeconds, "at least 1/Rate (%v), or the bucket holds no token", 1/c.Rate)
	case c.QueueDepth < 0:
		return invalid.Field("ratelimit", "QueueDepth", c.QueueDepth, "0 or more")
	case float64(c.QueueDepth) > c.Rate*day && c.Rate > 0:
		return invalid.Field("ratelimit", "QueueDepth", c.QueueDepth, "at most %.0f, a day's wait", math.Floor(c.Rate*day))
	}
	return c.Exempt.validate()
}
