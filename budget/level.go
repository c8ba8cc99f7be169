package budget

import "sync/atomic"

// A level is an amount of tokens in one atomic word. It is never below zero,
// and never rises above the limit given to add.
type level struct{ units atomic.Int64 }

// unit is one token. At 1e9 units per token, nanoseconds times tokens per second
// are units, and the largest capacity is still far from overflow.
const unit = 1e9

// maxTokens is the largest capacity.
const maxTokens = 1e9

// units returns tokens in fixed point, rounded to the nearest unit. What is not
// a positive number is nothing.
func units(tokens float64) int64 {
	switch {
	case !(tokens > 0):
		return 0
	case tokens >= maxTokens:
		return maxTokens * unit
	default:
		return int64(tokens*unit + 0.5)
	}
}

func tokens(units int64) float64 { return float64(units) / unit }

// take lowers l by n if it holds as much, and returns what it then holds.
func (l *level) take(n int64) (left int64, ok bool) {
	for {
		have := l.units.Load()
		if have < n {
			return have, false
		}
		if l.units.CompareAndSwap(have, have-n) {
			return have - n, true
		}
	}
}

// drop lowers l by n, or to zero, and returns what it then holds.
func (l *level) drop(n int64) (left int64) {
	for {
		have := l.units.Load()
		left = max(0, have-n)
		if left == have || l.units.CompareAndSwap(have, left) {
			return left
		}
	}
}

// add raises l by n, or to limit. At or above limit it writes nothing, so that
// the calls of a healthy client share a word that nobody changes.
func (l *level) add(n, limit int64) {
	for {
		have := l.units.Load()
		next := min(limit, have+n)
		if next <= have || l.units.CompareAndSwap(have, next) {
			return
		}
	}
}
