package shed

import "time"

// extreme is the greatest or the least of some positive measure over the last
// one to two times a memory. What is older is kept where nothing newer is known.
type extreme struct {
	least         bool // the least, or else the greatest
	memory        time.Duration
	current, last float64 // zero: nothing measured
	since         time.Duration
}

func (e *extreme) put(now time.Duration, v float64) {
	if now-e.since >= e.memory && e.current != 0 {
		e.last, e.current, e.since = e.current, 0, now
	}
	e.current = e.pick(e.current, v)
}

// reset forgets all but v.
func (e *extreme) reset(now time.Duration, v float64) { e.current, e.last, e.since = v, 0, now }

// value returns the extreme, or 0 if nothing was measured.
func (e *extreme) value() float64 { return e.pick(e.current, e.last) }

func (e *extreme) pick(a, b float64) float64 {
	if a == 0 || b != 0 && (b < a) == e.least {
		return b
	}
	return a
}
