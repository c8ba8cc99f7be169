package retry

import (
	"math"
	"time"
)

// A Backoff is exponential backoff with full jitter. It is a plain value without state. The zero
// Backoff does not wait.
type Backoff struct {
	Base time.Duration // longest wait before the first retry
	Max  time.Duration // longest wait before any retry; zero means no limit
}

// Ceiling returns min(Max, Base·2^n), the longest wait before retry n, counted from zero. No n
// overflows.
func (b Backoff) Ceiling(n int) time.Duration {
	limit := b.Max
	if limit == 0 {
		limit = math.MaxInt64
	}
	n = min(max(n, 0), 63)
	switch {
	case b.Base <= 0:
		return 0
	case b.Base > limit>>n:
		return limit
	default:
		return b.Base << n
	}
}

// Delay returns u times the ceiling for retry n, counted from zero. u is a random number in [0, 1).
func (b Backoff) Delay(n int, u float64) time.Duration { return scale(b.Ceiling(n), u) }

// scale returns u·d. For u in [0, 1] this is at most d, even if float64 cannot represent d exactly.
func scale(d time.Duration, u float64) time.Duration {
	if !(u < 1) {
		return d
	}
	return min(d, time.Duration(max(u, 0)*float64(d)))
}
