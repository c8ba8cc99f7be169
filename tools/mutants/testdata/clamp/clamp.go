// Package clamp has operators of all kinds. Its tests miss mutants of some.
package clamp

import "time"

const limit = 2 * 5

// Clamp returns n, or the nearest value from -limit to limit.
func Clamp(n int) int {
	if n > limit {
		return limit
	}
	if n < -limit {
		return -limit
	}
	return n
}

// Half returns half of d, and at least a second.
func Half[T ~int64](d T) T {
	if d/2 >= T(time.Second) {
		return d / 2
	}
	return T(time.Second)
}

// Count returns how many of words are not empty, and fails for none.
func Count(words ...string) (n int, ok bool) {
	for i := 0; i < len(words); i++ {
		if words[i]+"" != "" {
			n++
		}
	}
	return n, n != 0
}

// Wait returns how long to wait. No test calls it.
func Wait(n int) time.Duration { return time.Duration(n) * 2 * time.Second }
