package retry

import (
	"math"
	"time"
)

// A Backoff is exponential backoff with full jitter. It is a plain value without
// state. The zero Backoff does not wait.
type Backoff struct {
	Base time.Duration // longest wait before the first retry
	Max  time.Duration // longest wait at all; zero means without limit
}

// Ceiling returns min(Max, Base·2^n), the longest wait before retry n, counted
// from zero. It is right for any n.
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

// Delay returns u times the ceiling for retry n, counted from zero, where u is a
// random number in [0, 1).
func (b Backoff) Delay(n int, u float64) time.Duration { return scale(b.Ceiling(n), u) }

// scale returns u·d, which for u in [0, 1] is at most d even where float64 is
// too coarse for d.
func scale(d time.Duration, u float64) time.Duration {
	if !(u < 1) {
		return d
	}
	return min(d, time.Duration(max(u, 0)*float64(d)))
}
