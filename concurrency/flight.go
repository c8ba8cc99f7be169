package concurrency

import "time"

// flight counts the requests in flight by age, in epochs. What began before the last
// two epochs is parked: a stream, a long poll, a handler that hangs.
type flight struct {
	fresh, aging, parked int
	since, before        time.Duration // when this epoch and the one before it began
}

// working returns how many requests count.
func (f *flight) working() int { return f.fresh + f.aging }

// turn begins a new epoch if this one is older than span. Twice as old, it counts as two.
func (f *flight) turn(at, span time.Duration) {
	switch age := at - f.since; {
	case age >= 2*span:
		f.next(at)
		f.next(at)
	case age >= span:
		f.next(at)
	}
}

// next begins a new epoch.
func (f *flight) next(at time.Duration) {
	f.parked += f.aging
	f.aging, f.fresh = f.fresh, 0
	f.since, f.before = at, f.since
}

// add counts by requests that began at a time, and reports whether they are working.
func (f *flight) add(began time.Duration, by int) bool {
	switch {
	case began >= f.since:
		f.fresh += by
	case began >= f.before:
		f.aging += by
	default:
		f.parked += by
		return false
	}
	return true
}
