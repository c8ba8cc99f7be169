package shed

import (
	"math"
	"time"

	"github.com/seed90641741/spillway/internal/elapsed"
)

// caller is a place in the table. Its counts fade.
type caller struct {
	flow         uint64
	taken        uint64  // when this caller took the place, in order
	asked        float64 // requests
	used         float64 // seconds at work, without those of this epoch of requests at work
	spent, ended float64 // seconds at work of requests that have ended, and their number
	guess        float64 // seconds that the latest request is expected to take
	last         float64 // demand at the end of the last epoch
	fresh, aging int     // requests at work that began after the last turn, and before it
}

// known reports whether the caller keeps its place: it came again, or requests are at work.
func (w *caller) known() bool { return w.asked >= defended || w.held() > 0 }

// held returns the number of requests at work.
func (w *caller) held() int { return w.fresh + w.aging }

// enter counts a request that began to work so many seconds after the epoch began.
func (w *caller) enter(in float64) {
	w.fresh++
	w.used -= in
}

// leave counts a request that stopped to work so many seconds after the epoch began.
func (w *caller) leave(in, took float64, fresh bool) {
	if fresh {
		w.fresh--
	} else {
		w.aging--
	}
	w.used += in
	w.spent += took
	w.ended++
}

// work counts the work of an epoch of requests that are still at work. With a turn, requests that
// began before the last turn no longer count.
func (w *caller) work(seconds float64, turn bool) {
	w.used += float64(float64(w.held()) * seconds)
	if turn {
		w.fresh, w.aging = 0, w.fresh
	}
}

// end ends an epoch.
func (w *caller) end() {
	w.last = w.demand(0)
	for _, count := range []*float64{&w.asked, &w.used, &w.spent, &w.ended} {
		*count = elapsed.Trim(*count * fade)
	}
}

// cost returns the seconds at work of a request.
func (w *caller) cost() float64 {
	if w.ended < 1 {
		return w.guess
	}
	return w.spent / w.ended
}

// demand returns the seconds at work for all requests, if all were admitted. The time is given
// in seconds after the epoch began. What was used counts if it is more: streams are longer than
// the window, and slow requests of a quick caller have not ended yet.
func (w *caller) demand(in float64) float64 {
	return max(w.used+float64(float64(w.held())*in), w.asked*w.cost())
}

// leaves returns how many places become free within wait, almost certainly, if so many more
// requests start now: two standard deviations less than the mean, if each ends at random.
func (w *caller) leaves(more float64, wait time.Duration) float64 {
	n, cost := more+float64(w.held()), w.cost()
	if cost <= 0 {
		return n
	}
	stays := math.Exp(-wait.Seconds() / cost)
	return max(0, float64(n*(1-stays))-2*math.Sqrt(n*stays*(1-stays)))
}

// peak is the greatest value of the last one to two seconds.
type peak struct {
	now, older int
	since      time.Duration
}

func (p *peak) value(at time.Duration) int {
	switch d := at - p.since; {
	case d >= 2*time.Second:
		*p = peak{since: at}
	case d >= time.Second:
		*p = peak{older: p.now, since: at}
	}
	return max(p.now, p.older)
}

func (p *peak) add(at time.Duration, v int) {
	p.value(at)
	p.now = max(p.now, v)
}
