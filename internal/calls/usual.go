package calls

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/throttle"
)

// A Usual knows how long calls of a route usually take. A call that ended after a shorter time
// without an answer has not waited for as long as a healthy backend needs. So it says nothing about
// the backend: it is excused.
//
// Calls are measured from the first timeout until usualFor after the last one, so that without
// timeouts calls cost no measurement. The usual time of a route is valid for usualFor after a call
// of it was served last, so a backend that serves nothing any more is not excused for longer. An
// overloaded backend takes longer for its calls, but the callers that wait longest wait for longer
// than that: their timeouts count.
//
// A Usual knows the last usualRoutes routes that were served. Calls of other routes are not
// excused.
//
// There is one exception: while calls have been measured for less than usualGrace, a call of an
// unknown route that waited for less than usualGrace is excused.
//
// The zero Usual is ready for use, and safe for concurrent use. A nil *Usual knows nothing.
type Usual struct {
	until atomic.Int64 // until when calls are measured, in nanoseconds since 1970; 0: never

	mu     sync.Mutex
	since  time.Time // when the current time of measuring began
	routes map[string]usual
}

type usual struct {
	takes  time.Duration
	served time.Time // when the last served call ended
}

const (
	usualFor    = 10 * time.Second
	usualGrace  = 250 * time.Millisecond // the minimum time over which the throttle measures calls
	usualRoutes = 64
	// usualWeight is the number of calls over which the usual time is smoothed: one call moves it
	// by 1/16 of the difference, and 16 slower calls by two thirds.
	usualWeight = 16
)

// watches reports whether calls are measured at the time now.
func (u *Usual) watches(now time.Time) bool {
	if u == nil {
		return false
	}
	until := u.until.Load()
	return until != 0 && now.UnixNano() < until
}

// served adds a call that was sent at one time and had been served by another.
func (u *Usual) served(of throttle.Route, sent, now time.Time) {
	name, took := nameOf(of), now.Sub(sent)
	u.mu.Lock()
	defer u.mu.Unlock()
	x, known := u.routes[name]
	switch {
	case !known && u.routes == nil:
		u.routes = make(map[string]usual)
	case !known && len(u.routes) >= usualRoutes:
		u.evict()
	}
	if !known || now.Sub(x.served) > usualFor {
		x.takes = took
	}
	x.takes += (took - x.takes) / usualWeight
	x.served = now
	u.routes[name] = x
}

func (u *Usual) evict() {
	oldest, found := "", false
	for name, x := range u.routes {
		if !found || x.served.Before(u.routes[oldest].served) {
			oldest, found = name, true
		}
	}
	delete(u.routes, oldest)
}

// explains reports whether a call that has ended at the time now without an answer is excused:
// calls of its route usually take longer than the time that it had. From then on calls are
// measured. While they have been measured for less than grace, a call of an unknown route is also
// excused if it had less than grace.
func (u *Usual) explains(of throttle.Route, now time.Time, had, grace time.Duration) bool {
	if u == nil {
		return false
	}
	name := nameOf(of)
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.watches(now) {
		u.since = now
	}
	u.until.Store(now.Add(usualFor).UnixNano())
	x, known := u.routes[name]
	if known && now.Sub(x.served) <= usualFor {
		return had < x.takes
	}
	return had < grace && now.Sub(u.since) < grace
}

func nameOf(r throttle.Route) string {
	if r.Namer == nil {
		return r.Name
	}
	return r.Namer.Route()
}
