package shed

import (
	"math"
	"time"

	"github.com/seed90641741/spillway/internal/elapsed"
)

// caller is an entry of the table of callers. Each epoch reduces the numbers asked, used, spent and
// ended by the factor fade.
type caller struct {
	flow         uint64
	taken        uint64  // number of the caller, in the order in which callers got an entry
	asked        float64 // requests
	used         float64 // seconds at work, for requests still at work up to the begin of this epoch
	spent, ended float64 // seconds at work of requests that have ended, and their number
	guess        float64 // seconds that the latest request is expected to take
	last         float64 // demand at the end of the last epoch
	fresh, aging int     // requests at work that began after the last turn, and before it
}

// known reports whether the caller keeps its entry: it has sent a second request, or it has
// requests at work.
func (w *caller) known() bool { return w.asked >= defended || w.held() > 0 }

// held returns the number of requests at work.
func (w *caller) held() int { return w.fresh + w.aging }

// enter counts a request that began to work. in is the seconds from the begin of the epoch to that
// time.
func (w *caller) enter(in float64) {
	w.fresh++
	w.used -= in
}

// leave counts a request that has stopped working. in is the seconds from the begin of the epoch to
// that time, and took the seconds for which it was at work. fresh means that it began after the
// last turn.
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

// work counts the time of an epoch for the requests that are still at work. With a turn, requests
// that began before the last turn no longer count.
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

// cost returns how many seconds a request of the caller is at work, in the mean.
func (w *caller) cost() float64 {
	if w.ended < 1 {
		return w.guess
	}
	return w.spent / w.ended
}

// demand returns how many seconds all requests of the caller would be at work if all were admitted.
// in is the seconds from the begin of the epoch to now. The result is at least the time used:
// streams last longer than the window, and slow requests of a caller whose other requests are quick
// have not ended yet.
func (w *caller) demand(in float64) float64 {
	return max(w.used+float64(float64(w.held())*in), w.asked*w.cost())
}

// leaves returns how many requests end within wait, almost certainly, if more requests start in
// addition to those at work. It is the mean minus two standard deviations, for requests that end at
// random times.
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

// value returns the peak at a time.
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
