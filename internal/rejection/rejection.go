// Package rejection shares the rejections of policies: rejecting allocates nothing once each
// Level was met.
package rejection

import "sync/atomic"

// A Table holds the rejections for one reason, of the type E, one for each Level. It is safe
// for concurrent use.
type Table[E any] struct {
	rejection func(level float64) *E
	made      [cells]atomic.Pointer[E]
}

// NewTable returns a Table that makes each rejection with a func when it is first needed.
func NewTable[E any](rejection func(level float64) *E) *Table[E] {
	return &Table[E]{rejection: rejection}
}

// At returns the rejection with this Level: exact to the integer below 100, rounded down to
// two significant digits above, and from 0 to 99,000.
func (t *Table[E]) At(level float64) *E {
	cell, rounded := cellOf(level)
	if e := t.made[cell].Load(); e != nil {
		return e
	}
	t.made[cell].CompareAndSwap(nil, t.rejection(rounded))
	return t.made[cell].Load()
}

// highest is the highest Level, and cells the number of Levels: 100 below 100, and 90 for
// each further digit.
const highest, cells = 99_000, 100 + 3*90

func cellOf(level float64) (cell int, rounded float64) {
	if !(level > 0) { // or not a number
		return 0, 0
	}
	n, unit := int(min(level, highest)+0.5), 1
	for n >= 100 {
		n /= 10
		unit *= 10
		cell += 90
	}
	return cell + n, float64(n * unit)
}
