package throttle

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// A Route is the route of a call: its method, or the path without what names a single
// object. The empty route is none.
type Route struct {
	Name string
	// Namer, if not nil, is asked for the name where it matters: at most once in Admit and
	// once in Settle.
	Namer interface{ Route() string }
}

func (r Route) name() string {
	if r.Namer == nil {
		return r.Name
	}
	return r.Namer.Route()
}

// Routes keeps a throttle for the backend, and one for each route that the backend has
// recently not accepted calls of.
//
//	not accepted for the first time   counts for the throttle of the backend
//	then, until fewCalls have ended   one throttle decides for all such routes
//	from then on                      the throttle of the route
//
// The first rule keeps the throttle at work where routes hold names that never come again;
// the second where there are many routes of few calls each: neither of them would ever be
// known well enough alone. There are MaxRoutes; the one whose last failure is longest ago
// is replaced. Routes is safe for concurrent use; make it with [NewRoutes].
type Routes struct {
	backend  Throttle
	activity activity
	known    atomic.Int32 // how many routes there are, so that calls take no lock while there are none
	few      *Throttle    // nil while there are none

	mu     sync.RWMutex
	config Config
	all    map[string]*route
	gone   Stats // totals of routes that were replaced
}

// MaxRoutes is how many routes of a backend have a throttle of their own.
const MaxRoutes = 64

const fewCalls = 10 // as Config.MinRequests

type route struct {
	throttle Throttle
	latency  latency
	ended    atomic.Int64 // calls
	failed   atomic.Int64 // when one was last not accepted, by the clock of the backend
}

// NewRoutes returns Routes without any history, or an error that names the field of c that is
// out of range.
func NewRoutes(c Config) (*Routes, error) {
	t := new(Routes)
	if err := t.Update(c); err != nil {
		return nil, err
	}
	return t, nil
}

// Update changes the configuration, or returns an error and changes nothing. What is
// remembered is kept, unless the window changes.
func (t *Routes) Update(c Config) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.backend.Update(c); err != nil { // if not, none of the others returns one
		return err
	}
	t.config = c
	for name, x := range t.all {
		if err := x.throttle.Update(c.of(name)); err != nil {
			return err
		}
	}
	if t.few == nil {
		return nil
	}
	return t.few.Update(c.of(OtherRoutes))
}

func (t *Routes) find(name string) *route {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.all[name]
}

// Admit admits a call, or rejects it, as [Throttle.Admit] does. The ticket of an
// admitted call must be passed to Settle exactly once, with the same route.
func (t *Routes) Admit(now time.Time, call spillway.Call, of Route) (spillway.Ticket, error) {
	by := &t.backend
	if t.known.Load() > 0 {
		by = t.decides(of)
	}
	at, err := by.decide(now, call.Criticality)
	if err != nil {
		return spillway.Ticket{}, err
	}
	return spillway.Ticket{By: by, Epoch: uint64(at), Criticality: call.Criticality}, nil
}

// Unseen returns the ticket of a call that was sent at a time before t was made, and
// that t would have admitted, as it knew of no calls. It is for callers that make a
// throttle only when there is something to know.
func (t *Routes) Unseen(sent time.Time, c spillway.Criticality) spillway.Ticket {
	return spillway.Ticket{By: &t.backend, Epoch: uint64(t.backend.clock.since(sent)), Criticality: c}
}

// decides returns what decides on a call.
func (t *Routes) decides(of Route) *Throttle {
	if t.known.Load() == 0 {
		return &t.backend
	}
	switch x := t.find(of.name()); {
	case x == nil:
		return &t.backend
	case x.ended.Load() < fewCalls:
		return t.few // which add has made before x
	default:
		return &x.throttle
	}
}

// Closed reports whether nothing limits the calls of a class to a route: [StateClosed]. It
// counts nothing, and takes no lock but to find a route that has failed.
func (t *Routes) Closed(c spillway.Criticality, of Route) bool {
	return t.decides(of).classes[c.Index()].probability() == noLimit
}

// Timed reports whether Settle needs the exact time at which a call with this outcome has
// ended. For all others Settle takes the time at which the call was sent, and any other may
// be passed.
func (t *Routes) Timed(o spillway.Outcome) bool {
	return o == spillway.OutcomeTimedOut || o.Accepted() && t.known.Load() > 0
}

// Limited notes that the in-flight limit of the caller was reached at the time now. Calls
// that time out after a long wait meanwhile say nothing about the backend.
func (t *Routes) Limited(now time.Time) {
	later(&t.activity.limited, t.backend.clock.since(now), time.Second)
}

// Settle settles the ticket of a call that was sent at one time and has ended at another. A
// call that timed out counts as rejected unless something other than an overloaded backend
// explains its wait: calls of its route that were sent later were served meanwhile, and
// usually take less than a tenth of the wait; or it waited for 10 s or more, and meanwhile the
// backend served calls of any route, or the in-flight limit was reached ([Routes.Limited]).
func (t *Routes) Settle(sent, now time.Time, ticket *spillway.Ticket, of Route, o spillway.Outcome) {
	if !t.Timed(o) {
		now = sent
	}
	failed := o.Informs() && !o.Accepted()
	if o.Accepted() {
		later(&t.activity.served, t.backend.clock.since(sent), time.Second)
	}
	if ticket.By == nil || !o.Informs() || !failed && t.known.Load() == 0 {
		ticket.Settle(now, o)
		return
	}
	name := of.name()
	x := t.find(name)
	switch {
	case o == spillway.OutcomeTimedOut && t.explains(x, t.backend.clock.since(sent), now.Sub(sent)):
		ticket.Settle(now, spillway.OutcomeAbandoned)
		return
	case x == nil:
		if failed {
			t.add(now, name)
		}
		ticket.Settle(now, o)
		return
	case o.Accepted():
		x.latency.add(t.backend.clock.since(sent), now.Sub(sent))
	case failed:
		x.failed.Store(int64(t.backend.clock.since(now)))
	}
	t.settle(now, ticket, x, o)
}

// settle settles the ticket of a call to the route x, which some throttle has admitted: that of
// the route counts it in any case.
func (t *Routes) settle(now time.Time, ticket *spillway.Ticket, x *route, o spillway.Outcome) {
	own, few := ticket.By == spillway.Settler(&x.throttle), ticket.By == spillway.Settler(t.few)
	foreign := spillway.Ticket{Epoch: noEpoch, Criticality: ticket.Criticality}
	if !own {
		x.throttle.Settle(now, foreign, o)
	}
	if !o.Accepted() && !own && !few { // it was sent when nothing was known of the route
		t.few.Settle(now, foreign, o)
		o = spillway.OutcomeAbandoned
	}
	ticket.Settle(now, o)
	x.ended.Add(1)
}

// explains reports whether something else than a busy backend explains that a call of the
// route x, which may be nil, timed out.
func (t *Routes) explains(x *route, sent, waited time.Duration) bool {
	return x != nil && x.latency.explains(sent, waited) || t.activity.explains(sent, waited)
}

// noEpoch is that of no ticket: the throttle that counts such a one did not admit it.
const noEpoch = math.MaxUint64

// add makes a throttle for a route that has a name. It replaces another one if there are too many.
func (t *Routes) add(now time.Time, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if name == "" || t.all[name] != nil {
		return
	}
	x := new(route)
	if x.throttle.Update(t.config.of(name)) != nil {
		return // it was tried: cannot be
	}
	x.failed.Store(int64(t.backend.clock.since(now)))
	x.throttle.inherit(now, &t.backend)
	if t.all == nil {
		few := new(Throttle)
		if few.Update(t.config.of(OtherRoutes)) != nil {
			return // likewise
		}
		few.inherit(now, &t.backend)
		t.few, t.all = few, make(map[string]*route)
	}
	if len(t.all) >= MaxRoutes {
		t.evict(now)
	}
	t.all[name] = x
	t.known.Store(int32(len(t.all)))
}

// evict removes the route whose last failure is longest ago. The lock is held.
func (t *Routes) evict(now time.Time) {
	var oldest string
	for name, x := range t.all {
		if old := t.all[oldest]; old == nil || x.failed.Load() < old.failed.Load() {
			oldest = name
		}
	}
	total(&t.gone, t.all[oldest].throttle.Stats(now))
	delete(t.all, oldest)
}

// Advise passes on which share of the calls of a criticality the server says that it
// accepts: see [Throttle.Advise].
func (t *Routes) Advise(now time.Time, c spillway.Criticality, ratio float64) {
	advised := t.backend.classes[c.Index()].advised.Load()
	t.backend.Advise(now, c, ratio)
	if t.known.Load() == 0 || ratio == 1 && !advised {
		return
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	t.few.Advise(now, c, ratio)
	for _, x := range t.all {
		x.throttle.Advise(now, c, ratio)
	}
}

// Stats returns what is known at the time now: the sums over all routes, and the worst state,
// greatest probability and lowest limit of the throttles that decide on their calls.
func (t *Routes) Stats(now time.Time) Stats {
	s := t.backend.Stats(now)
	if t.known.Load() == 0 {
		return s
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	total(&s, t.gone)
	few := t.few.Stats(now)
	total(&s, few)
	for _, x := range t.all {
		of := x.throttle.Stats(now)
		total(&s, of)
		if x.ended.Load() < fewCalls {
			worst(&s, few)
		} else {
			worst(&s, of)
		}
		for i := range s {
			s[i].Requests += of[i].Requests
			s[i].Accepts += of[i].Accepts
		}
	}
	return s
}

// worst puts the state, the probability and the limit of a throttle into s where they are worse.
func worst(s *Stats, of Stats) {
	for i := range s {
		s[i].State = max(s[i].State, of[i].State)
		s[i].Probability = max(s[i].Probability, of[i].Probability)
		s[i].Limit = min(s[i].Limit, of[i].Limit)
	}
}

// total adds the totals of a throttle to s.
func total(s *Stats, of Stats) {
	for i := range s {
		s[i].RejectedTotal += of[i].RejectedTotal
		s[i].ProbesTotal += of[i].ProbesTotal
	}
}
