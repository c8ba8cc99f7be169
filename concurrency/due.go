package concurrency

import (
	"math"
	"time"
)

// due is the time to a deadline, in quarters of an octave. A request that times out was either ended at its deadline, or its handler
// does not know of it, and has done the work.
type due uint8

// quarter is where the bits of the quarters of an octave begin in a number: the logarithm and two bits of the mantissa.
const quarter = mantissa - 2

// deadlineOf returns the due of so many seconds.
func deadlineOf(left float64) due {
	if left <= 0 {
		return 0
	}
	return due(min(max(int(math.Float64bits(left)>>quarter)-(lowest+bias)<<2, 0), math.MaxUint8))
}

// latest returns how long a request takes at most that is ended at its deadline.
func (d due) latest() time.Duration {
	return seconds(math.Float64frombits(uint64(int(d)+1+(lowest+bias)<<2)<<quarter)) + brief
}
