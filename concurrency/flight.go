package concurrency

import "time"

// flight counts the requests in flight by age, in epochs. What began before the last
// two epochs, while later requests ended, is parked: a stream, a long poll, a handler that hangs.
type flight struct {
	fresh, aging, parked int
	since, before        time.Duration // when this epoch and the one before it began
	latest               time.Duration // when the latest one began
	overtook             int           // ends of requests of this epoch, less the ends of older ones
}

// working returns how many requests count.
func (f *flight) working() int { return f.fresh + f.aging }

// turn begins a new epoch if this one is older than span, and its requests end before older ones.
// If the older ones end first, or nothing ends, many may wait for the same thing; a memory later
// that is no reason any more. After a silence of a span, what is in flight counts as older than two.
// What began in this instant is of this epoch, so that none can end in it.
func (f *flight) turn(at, span, silence time.Duration) {
	age := at - f.since
	if age < span || f.latest == at || f.overtook <= 0 && age < memory && f.working() >= round/2 {
		return
	}
	f.next(at)
	if age >= 2*span && silence >= span {
		f.next(at)
	}
}

// next begins a new epoch.
func (f *flight) next(at time.Duration) {
	f.parked += f.aging
	f.aging, f.fresh, f.overtook = f.fresh, 0, 0
	f.since, f.before = at, f.since
}

// end takes a request out, and reports whether it was working.
func (f *flight) end(began time.Duration) bool {
	if began >= f.since {
		f.overtook++
	} else {
		f.overtook--
	}
	return f.add(began, -1)
}

// add counts by requests that began at a time, and reports whether they are working.
func (f *flight) add(began time.Duration, by int) bool {
	f.latest = max(f.latest, began)
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
