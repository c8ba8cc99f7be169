package ejection

import (
	"math"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/elapsed"
)

// Evidence is how many of the recent attempts at one endpoint it has rejected, by class. A
// retry delay is a wish of the endpoint, and its rejections show how much it means: one that
// rejects a call now and then, or half of a burst, is full and serves; the others could not
// serve its whole load in addition to their own. The zero Evidence is ready for use. It is safe
// for concurrent use.
type Evidence struct {
	mu       sync.Mutex
	served   [spillway.Criticalities]float64
	rejected [spillway.Criticalities]float64
	attempts float64 // of recentTime, of all classes
	at       int64   // of the last attempt
}

const (
	// recentTime and recentCalls are what counts as recent, whichever is more. Endpoints
	// that are full reject for some 20 ms at a time, the time of one call; where there are few
	// calls, one rejection in so short a time says little.
	recentTime  = 100 * time.Millisecond
	recentCalls = 8
	// mostly is the share of rejections from which a retry delay is obeyed. An endpoint that is
	// full stays well below it, because it serves; one that is closed is at 1.
	mostly = 0.75
)

// Served takes in n attempts of a class that were not rejected, the last of them at the time
// at, in nanoseconds, and returns the attempts of the last 100 ms.
func (e *Evidence) Served(at int64, class spillway.Criticality, n int) (attempts float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fade(at)
	e.served[class.Index()] += float64(n)
	e.attempts += float64(n)
	return e.attempts
}

// Rejected takes in an attempt of a class that was rejected at the time at, in nanoseconds,
// while so many others were in flight, which count as served. It reports whether the
// endpoint rejects most of that class and lower ones, and returns the attempts of the last 100 ms.
func (e *Evidence) Rejected(at int64, class spillway.Criticality, flight int64) (most bool, attempts float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fade(at)
	e.rejected[class.Index()]++
	e.attempts++
	served, rejected := float64(max(flight, 0)), 0.0
	for i := range class.Index() + 1 {
		served, rejected = served+e.served[i], rejected+e.rejected[i]
	}
	return rejected >= mostly*(served+rejected), e.attempts
}

// fade forgets what is older than recentTime, but keeps recentCalls.
func (e *Evidence) fade(at int64) {
	if at <= e.at {
		return
	}
	all := 0.0
	for i := range e.served {
		all += e.served[i] + e.rejected[i]
	}
	keep := math.Exp(-float64(at-e.at) / float64(recentTime))
	e.at = at
	e.attempts *= keep
	keep = max(keep, min(recentCalls/all, 1))
	for i := range e.served {
		e.served[i] = elapsed.Trim(e.served[i] * keep)
		e.rejected[i] = elapsed.Trim(e.rejected[i] * keep)
	}
}
