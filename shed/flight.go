package shed

import "time"

const (
	shortest = time.Second      // an epoch lasts this long at least
	longest  = 10 * time.Second // and at most
	spans    = 8                // or as many latencies
)

// flight counts the requests in flight by age, in epochs of some latencies. One
// that began before the last two epochs is parked: a stream, a long poll, a
// handler that hangs. Those say nothing of the queue at a backend, and if they
// counted, a few of them would keep all others out.
type flight struct {
	fresh, aging, parked int
	since, before        time.Duration // when this epoch and the one before it began
}

// moving returns how many requests count.
func (f *flight) moving() int { return f.fresh + f.aging }

// turn begins a new epoch if this one has lasted long enough for the latency in
// seconds.
func (f *flight) turn(now time.Duration, latency float64) {
	span := min(max(time.Duration(spans*latency*float64(time.Second)), shortest), longest)
	if now-f.since < span {
		return
	}
	f.parked += f.aging
	f.aging, f.fresh = f.fresh, 0
	f.since, f.before = now, f.since
}

func (f *flight) enter() { f.fresh++ }

// leave counts the end of a request that entered at the time began.
func (f *flight) leave(began time.Duration) {
	switch {
	case began >= f.since:
		f.fresh--
	case began >= f.before:
		f.aging--
	default:
		f.parked--
	}
}
