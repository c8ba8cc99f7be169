package calls

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/throttle"
)

// A Usual knows how long calls of a route usually take. A call that ended after less without an
// answer has not waited for as long as a healthy backend needs: that explains itself, and says
// nothing about the backend.
//
// Calls are measured while others time out, and for usualFor after that: no call is slower before.
// What is known of a route is believed for usualFor after its last call was served. So a backend
// that serves nothing any more has no excuse for longer. While the backend is overloaded its calls
// take longer, and the callers that wait longest do so longer than what is usual: their timeouts
// count.
//
// A route has a place here by being served. There are usualRoutes; the one that was served longest
// ago is replaced. A route without a place has no excuse.
//
// In the first usualGrace that calls are measured, a route may not have been measured yet: then a
// wait of less than that has the excuse, too.
//
// The zero Usual is ready for use, and safe for concurrent use. A nil *Usual knows nothing.
type Usual struct {
	until atomic.Int64 // nanoseconds

	mu     sync.Mutex
	since  time.Time // when the first call timed out since calls were last not measured
	routes map[string]usual
}

type usual struct {
	takes  time.Duration
	served time.Time // the last call ended then
}

const (
	usualFor    = 10 * time.Second
	usualGrace  = 250 * time.Millisecond // the shortest time over which the throttle measures anything
	usualRoutes = 64
	// usualWeight is that of one call: after 16 calls that are slower, the usual time has moved by
	// two thirds of the difference.
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

// served takes in a call that was served.
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

// explains reports whether calls of a route usually take longer than one that had so much time, and
// that was not answered by the time now. It has calls measured from then on. Within grace of the
// first such call nothing may be known yet.
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
