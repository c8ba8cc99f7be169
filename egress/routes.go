package egress

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/throttle"
)

// A Router names the route of a call: its method, or the path without what names a single
// object. Calls of a route that the backend does not accept are throttled apart from the
// other routes. Route is called only where that matters, at most twice for each attempt.
// The empty route is none.
type Router interface{ Route() string }

// A routing says how to learn the route of a call.
type routing struct {
	by  Router // nil: the key is the route
	key string
}

func (r routing) route() string {
	if r.by == nil {
		return r.key
	}
	return r.by.Route()
}

// routes keeps a throttle for each route that the backend has not accepted calls of late,
// so that a route that always fails does not have the others throttled.
//
//	not accepted for the first time   counts for the throttle of the backend
//	then, until fewCalls have ended   one throttle decides for all such routes
//	from then on                      the throttle of the route
//
// The first rule keeps the throttle at work where routes hold names that never come again;
// the second where there are many routes of few calls each: neither of them would ever be
// known well enough alone. There are maxRoutes; the one whose last failure is longest ago
// makes way. The zero routes has no configuration yet.
type routes struct {
	known atomic.Int32 // how many there are, so that those who have none take no lock
	few   throttle.Throttle

	mu     sync.RWMutex
	config throttle.Config
	all    map[string]*route
	gone   throttle.Stats // totals of those that made way
}

const (
	maxRoutes = 64
	fewCalls  = 10 // as throttle.Config.MinRequests
)

type route struct {
	throttle throttle.Throttle
	ended    atomic.Int64 // calls
	failed   atomic.Int64 // when one was last not accepted, in nanoseconds since 1970
}

// update changes the configuration of all throttles. It was tried before.
func (r *routes) update(c throttle.Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.config = c
	for _, x := range r.all {
		if err := x.throttle.Update(c); err != nil {
			return err
		}
	}
	return r.few.Update(c)
}

func (r *routes) of(name string) *route {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.all[name]
}

// gate returns what decides on a call: the throttle of the backend, shared, unless the
// route of the call has another.
func (r *routes) gate(shared spillway.Gate, way routing) spillway.Gate {
	if r.known.Load() == 0 {
		return shared
	}
	switch x := r.of(way.route()); {
	case x == nil:
		return shared
	case x.ended.Load() < fewCalls:
		return &r.few
	default:
		return &x.throttle
	}
}

// settle settles the ticket of a call, which has ended at the time now.
func (r *routes) settle(now time.Time, t *spillway.Ticket, way routing, o spillway.Outcome) {
	failed := o.Informs() && !o.Accepted()
	if t.By == nil || !o.Informs() || !failed && r.known.Load() == 0 {
		t.Settle(now, o)
		return
	}
	name := way.route()
	x := r.of(name)
	if x == nil {
		if failed && name != "" {
			r.add(now, name)
		}
		t.Settle(now, o)
		return
	}
	if failed {
		x.failed.Store(now.UnixNano())
	}
	own, few := t.By == spillway.Settler(&x.throttle), t.By == spillway.Settler(&r.few)
	foreign := spillway.Ticket{Epoch: noEpoch, Criticality: t.Criticality}
	if !own {
		x.throttle.Settle(now, foreign, o)
	}
	if failed && !own && !few { // it was sent when nothing was known of the route
		r.few.Settle(now, foreign, o)
		o = spillway.Abandoned
	}
	t.Settle(now, o)
	x.ended.Add(1)
}

// noEpoch is that of no ticket: the throttle that counts such a one did not admit it.
const noEpoch = math.MaxUint64

// add makes a throttle for a route. Another one makes way if there are too many.
func (r *routes) add(now time.Time, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[name] != nil {
		return
	}
	x := new(route)
	if x.throttle.Update(r.config) != nil {
		return // it was tried: cannot be
	}
	x.failed.Store(now.UnixNano())
	if r.all == nil {
		r.all = make(map[string]*route)
	}
	if len(r.all) >= maxRoutes {
		r.evict(now)
	}
	r.all[name] = x
	r.known.Store(int32(len(r.all)))
}

// evict lets go of the route whose last failure is longest ago. The lock is held.
func (r *routes) evict(now time.Time) {
	var oldest string
	for name, x := range r.all {
		if old := r.all[oldest]; old == nil || x.failed.Load() < old.failed.Load() {
			oldest = name
		}
	}
	total(&r.gone, r.all[oldest].throttle.Stats(now))
	delete(r.all, oldest)
}

// stats adds to those of the throttle of the backend what is known of routes: sums, and
// the greatest probability.
func (r *routes) stats(now time.Time, s *throttle.Stats) {
	if r.known.Load() == 0 {
		return
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	total(s, r.gone)
	total(s, r.few.Stats(now))
	for _, x := range r.all {
		of := x.throttle.Stats(now)
		total(s, of)
		for i := range s {
			s[i].Requests += of[i].Requests
			s[i].Accepts += of[i].Accepts
			s[i].Probability = max(s[i].Probability, of[i].Probability)
		}
	}
}

// total adds the totals of a throttle to s.
func total(s *throttle.Stats, of throttle.Stats) {
	for i := range s {
		s[i].RejectedTotal += of[i].RejectedTotal
		s[i].ProbesTotal += of[i].ProbesTotal
	}
}
