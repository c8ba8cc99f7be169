// Package precedence orders the calls of a class by the tasks that they belong to.
package precedence

import (
	"math/bits"

	"github.com/seed90641741/spillway"
)

// Steps is how many steps of progress there are: none, 1, 2 to 3, and more calls served. With two steps, of tasks of ten calls in
// turn three in a hundred fewer are done (benchmarks/tasks).
const Steps = 4

// An Order says which of two calls of a class is rejected first, the lower one: that of the task with less progress, and of
// several that with the lower level.
type Order uint16

// Of returns the order of a call.
func Of(p spillway.Progress, l spillway.Level) Order {
	return Order(min(bits.Len8(uint8(p)), Steps-1))<<8 | Order(l)
}

// Step returns the step of progress, below [Steps].
func (o Order) Step() int { return int(o >> 8) }

// Level returns the level.
func (o Order) Level() spillway.Level { return spillway.Level(o) }
