// Package tokens holds an amount of tokens in one atomic word, in fixed point, so
// that tenths of a token add up exactly.
package tokens

import (
	"math"
	"sync/atomic"
)

// Unit is one token. At 1e9 units per token, nanoseconds times tokens per second
// are units, and the largest capacity is still far from overflow.
const Unit = 1e9

// Max is the largest amount, in tokens.
const Max = 1e9

// Units returns tokens in fixed point, rounded to the nearest unit. What is not
// a positive number is nothing.
func Units(tokens float64) int64 {
	if math.IsNaN(tokens) {
		return 0
	}
	return int64(float64(min(max(tokens, 0), Max)*Unit) + 0.5)
}

// Float returns units as tokens.
func Float(units int64) float64 { return float64(units) / Unit }

// CreditCalls is the number of calls whose deposits equal the initial credit of a bucket that
// is filled by calls: as the first deposits repay the credit, retries never exceed their share
// of the calls after this many calls. With a share of 10 % the credit is three retries, enough
// for the first ten calls while one task in four rejects.
const CreditCalls = 30

// The budgets of retry strategies that are given none.
const (
	// DefaultRatio is how many tokens a call earns.
	DefaultRatio = 0.1
	// EarningCalls is how many calls fill a bucket that is filled by calls.
	EarningCalls = 1000
	// StandardCapacity is the capacity of one that starts full and is not filled by calls.
	StandardCapacity = 500
)

// A Level is an amount of tokens. It is never below zero, and never rises above
// the limit given to Add. The zero Level is empty. It is safe for concurrent use.
type Level struct{ units, owed atomic.Int64 }

// Load returns the level.
func (l *Level) Load() (units int64) { return l.units.Load() }

// Set makes the level n.
func (l *Level) Set(n int64) { l.units.Store(n) }

// Credit raises the level by n, which the next n that are added repay.
func (l *Level) Credit(n int64) {
	l.units.Add(n)
	l.owed.Add(n)
}

// repay returns what is left of n after it has paid what is owed.
func (l *Level) repay(n int64) int64 {
	for {
		owed := l.owed.Load()
		paid := min(owed, n)
		if l.owed.CompareAndSwap(owed, owed-paid) {
			return n - paid
		}
	}
}

// Take lowers the level by n if it is as high, and returns what it then is.
func (l *Level) Take(n int64) (left int64, ok bool) {
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

// Drop lowers the level by n, or to zero, and returns what it then is.
func (l *Level) Drop(n int64) (left int64) {
	for {
		have := l.units.Load()
		left = max(0, have-n)
		if left == have || l.units.CompareAndSwap(have, left) {
			return left
		}
	}
}

// Owe lowers the level by n, or to zero. What is missing is owed, up to most in all: what is added
// next repays it.
func (l *Level) Owe(n, most int64) {
	for {
		have := l.units.Load()
		taken := min(have, n)
		if taken == 0 || l.units.CompareAndSwap(have, have-taken) {
			n -= taken
			break
		}
	}
	for n > 0 {
		owed := l.owed.Load()
		next := max(owed, min(most, owed+n))
		if next == owed || l.owed.CompareAndSwap(owed, next) {
			return
		}
	}
}

// Add raises the level by n, or to limit. At or above limit it writes nothing, so
// that the calls of a healthy client share a word that does not change.
func (l *Level) Add(n, limit int64) {
	if l.owed.Load() != 0 {
		n = l.repay(n)
	}
	for {
		have := l.units.Load()
		next := min(limit, have+n)
		if next <= have || l.units.CompareAndSwap(have, next) {
			return
		}
	}
}
