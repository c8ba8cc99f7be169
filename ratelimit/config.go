package ratelimit

import (
	"math"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

const (
	maxRate = 1e6     // tokens per second: one token takes a microsecond or more
	day     = 86400.0 // seconds: the longest burst and the longest wait
)

// Config configures a [Limiter]. The zero Config admits everything.
type Config struct {
	// Rate is the number of admissions per second in the long run. Zero and negative mean no limit;
	// otherwise it must be 1/86400 (one a day) to 1e6. The Limiter keeps it as the time for one
	// token, rounded up to whole nanoseconds. So it is exact to a tenth of a percent at 1e6, and
	// better below.
	Rate float64

	// BurstSeconds is the size of the bucket, in seconds of Rate. With a higher value, bursts pass
	// that the server may not be able to serve; a lower one rejects when arrivals are merely
	// uneven. Zero means 1, or 1/Rate if that is more. It must be at least 1/Rate and at most
	// 86400.
	BurstSeconds float64

	// QueueDepth is the number of callers that may wait for a token at once. Zero means that none
	// waits: without a token, a call is rejected. It must not be negative, and the last caller in
	// the queue must not have to wait for more than a day. Use a queue if a rejection costs the
	// caller more than a wait, as for connections.
	QueueDepth int

	// Exempt names the callers that need no token. The zero Exempt matches no caller.
	Exempt Exempt
}

// terms returns c in the units of the bucket, or an error that names the first bad field.
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
		// 1e9/Rate may be a whole number plus a rounding error.
		interval := math.Ceil(1e9/c.Rate - 1e-6)
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
