package balance

import (
	"math"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
)

// rejections is how many of the recent attempts at an endpoint it has rejected, by class. A hint
// is a wish of the endpoint, and its rejections show how much it means: one that rejects
// a call now and then is full, and the others could not serve its whole load.
type rejections struct {
	mu       sync.Mutex
	calls    [spillway.Criticalities]float64
	rejected [spillway.Criticalities]float64
	at       int64 // of the last attempt
}

const (
	// recentTime and recentCalls are what counts as recent, whichever is more. Endpoints
	// that are full reject for some 20 ms at a time, the time of one call; where there are few
	// calls, one rejection in so short a time says little.
	recentTime  = 100 * time.Millisecond
	recentCalls = 8
	// mostly is the share of rejections from which a hint is obeyed. An endpoint that is full
	// stays well below it, because it serves; one that is closed is at 1.
	mostly = 0.75
)

// add takes in an attempt of a class that ended at a time, and reports whether the endpoint
// rejects most of that class and lower ones. Attempts in flight are ones that it has not rejected.
func (r *rejections) add(at int64, class int, rejected bool, flight int64) (most bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fade(at)
	r.calls[class]++
	if !rejected {
		return false
	}
	r.rejected[class]++
	calls, refused := float64(max(flight, 0)), 0.0
	for i := range class + 1 {
		calls, refused = calls+r.calls[i], refused+r.rejected[i]
	}
	return refused >= mostly*calls
}

// fade forgets what is older than recentTime, but keeps recentCalls.
func (r *rejections) fade(at int64) {
	all := 0.0
	for _, n := range r.calls {
		all += n
	}
	if at <= r.at || all <= recentCalls {
		r.at = max(r.at, at)
		return
	}
	keep := max(math.Exp(-float64(at-r.at)/float64(recentTime)), recentCalls/all)
	r.at = at
	for i := range r.calls {
		r.calls[i] *= keep
		r.rejected[i] *= keep
	}
}
