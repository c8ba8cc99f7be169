package concurrency

import "time"

// flight counts the requests of a key in flight by age. Time is divided into epochs. Requests that
// began before this epoch and the one before it are parked. They do not count as working: these are
// streams, long polls, and handlers that hang.
type flight struct {
	// These are numbers of requests in flight: fresh ones began in this epoch, aging ones in the epoch
	// before it, and parked ones earlier.
	fresh, aging, parked int
	since, before        time.Duration // when this epoch and the one before it began
	latest               time.Duration // when the latest request began
	// overtook is how many requests of this epoch have ended in it, minus how many older ones have.
	overtook int
}

// working returns the number of requests that are not parked.
func (f *flight) working() int { return f.fresh + f.aging }

// turn begins a new epoch at a time if this one has lasted for span. If 16 or more requests are
// working, more requests of this epoch than older ones must have ended in it. Otherwise all may
// wait for the same thing, and the epoch lasts for at least ten seconds. silence is for how long
// the key was not used. If the epoch has lasted for two spans, and silence is at least one span,
// all requests in flight are parked at once. An epoch cannot begin at the time at which the latest
// request began, because that request belongs to the epoch before.
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

// next begins a new epoch: the aging requests are parked, and the fresh ones are aging.
func (f *flight) next(at time.Duration) {
	f.parked += f.aging
	f.aging, f.fresh, f.overtook = f.fresh, 0, 0
	f.since, f.before = at, f.since
}

// end removes a request that began at a time, and reports whether it was working, not parked.
func (f *flight) end(began time.Duration) bool {
	if began >= f.since {
		f.overtook++
	} else {
		f.overtook--
	}
	return f.add(began, -1)
}

// add changes the number of requests in flight by the number by. began says when these requests
// began. It reports whether they count as working, and not as parked.
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
