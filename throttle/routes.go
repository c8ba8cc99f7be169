package throttle

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// A Route is the route of a call: its method, or the path without what names a single
// object. The empty route is none.
type Route struct {
	Name string
	// Namer, if not nil, makes the name, and Name is ignored. If it is a [Hasher], its Route method
	// is called only for a name that is not known yet; otherwise it is called for each use of the
	// Route.
	Namer interface{ Route() string }
}

// A Hasher is a [Route.Namer] that returns a hash of its name without making the name. Equal names
// must have equal hashes.
type Hasher interface {
	RouteHash(seed maphash.Seed) uint64
}

func (r Route) name() string {
	if r.Namer == nil {
		return r.Name
	}
	return r.Namer.Route()
}

// hash returns a hash of the name, or 0 if there is no route.
func (r Route) hash(seed maphash.Seed) uint64 {
	if h, ok := r.Namer.(Hasher); ok {
		return h.RouteHash(seed)
	}
	if name := r.name(); name != "" {
		return maphash.String(seed, name)
	}
	return 0
}

// Routes keeps a throttle for each route that the backend has served, one for all other routes
// together, and one for the backend as a whole. One of them decides on a call:
//
//	a route that was served         its own throttle, while that limits anything;
//	                                else the one of the backend
//	a route that never was          the one of all others
//	no route                        the one of the backend
//
// Calls of routes that never were served count only for the throttle of all other routes. When a
// route that was served fails, 4 of its failures count for the backend. Further ones count only
// after the backend has accepted one of K of its calls again. So the backend is limited when most
// of the served routes fail. Routes is safe for concurrent use; make it with [NewRoutes].
type Routes struct {
	clock    clock
	seed     maphash.Seed
	rand     atomic.Pointer[func() float64]
	config   atomic.Pointer[Config]
	limited  atomic.Int32 // number of classes that limit anything; at 0 every call is sent
	swept    atomic.Int64 // when sweep last ran, as a duration on the clock
	activity activity

	backend, others   classes
	routes, customers places
	mu                sync.Mutex // one Update at a time
}

const (
	// charges is the number of failures of a route that count for the backend. With 2, an
	// overloaded backend whose routes have few calls each gets 2.6 calls for each accepted one
	// instead of 2.1. With more than 4, two broken routes would suffice to limit all others.
	charges = 4
	// othersMargin is a factor for the throttle of all other routes: while the backend serves any
	// route, that throttle begins a limit only after so many times as many failures. Until then a new
	// route can be served for the first time.
	othersMargin = 20
)

// NewRoutes returns Routes without any history, or an error that names the field of c that is
// out of range.
func NewRoutes(c Config) (*Routes, error) {
	t := &Routes{seed: maphash.MakeSeed()}
	if err := t.Update(c); err != nil {
		return nil, err
	}
	return t, nil
}

// Update changes the configuration, or returns an error and changes nothing. What is
// remembered is kept, unless the window changes.
func (t *Routes) Update(c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rand.Store(&c.Rand)
	t.config.Store(&c)
	t.backend.configure(c, &t.limited)
	t.others.configure(c.of(OtherRoutes), &t.limited)
	for _, p := range [...]*places{&t.routes, &t.customers} {
		for _, x := range p.load().order {
			x.configure(c.of(x.name), &t.limited)
		}
	}
	return nil
}

// A settledBy is Routes as the Settler of its tickets, for [spillway.Ticket.Settle].
type settledBy Routes

// Settle implements [spillway.Settler]: the call counts for the backend.
func (t *settledBy) Settle(now time.Time, ticket spillway.Ticket, o spillway.Outcome) {
	ticket.By = t
	(*Routes)(t).Settle(now, now, &ticket, Route{}, o)
}

// Admit admits a call, or rejects it, as [Throttle.Admit] does. The ticket of an
// admitted call must be passed to Settle exactly once, with the same route.
func (t *Routes) Admit(now time.Time, call spillway.Call, of Route) (spillway.Ticket, error) {
	at, customer := t.clock.read(now), uint64(0)
	if call.Customer != "" {
		customer = maphash.String(t.seed, call.Customer)
	}
	if t.limited.Load() > 0 {
		if err := t.decide(at, &call, customer, of); err != nil {
			return spillway.Ticket{}, err
		}
	}
	return spillway.Ticket{By: (*settledBy)(t), Epoch: uint64(at), State: customer, Criticality: call.Criticality}, nil
}

// decide asks the throttles of the customer and of the route.
func (t *Routes) decide(at time.Duration, call *spillway.Call, customer uint64, of Route) error {
	t.sweep(at)
	route, class := of.hash(t.seed), call.Criticality.Index()
	if x := t.customers.find(customer); customer != 0 && x != nil {
		if err := x.classes[class].ask(at, call, &t.rand); err != nil {
			return err
		}
	}
	return t.by(class, route).ask(at, call, &t.rand)
}

// by returns the throttle that decides on a call of a route, after that of its customer.
func (t *Routes) by(class int, route uint64) *class {
	if route == 0 {
		return &t.backend[class]
	}
	switch x := t.routes.find(route); {
	case x == nil:
		return &t.others[class]
	case x.classes[class].limits():
		return &x.classes[class]
	default:
		return &t.backend[class]
	}
}

// sweep brings all throttles up to date once in a Window, so that idle names limit nothing.
func (t *Routes) sweep(at time.Duration) {
	last := t.swept.Load()
	if at-time.Duration(last) < t.config.Load().Window || !t.swept.CompareAndSwap(last, int64(at)) {
		return
	}
	t.others.stats(at)
	for _, p := range [...]*places{&t.routes, &t.customers} {
		for _, x := range p.load().order {
			x.stats(at)
		}
	}
}

// Unseen returns a ticket for a call that was sent before t was made. It is for callers that make
// the Routes of a backend only once a call has an outcome that they need to remember.
func (t *Routes) Unseen(sent time.Time, c spillway.Criticality) spillway.Ticket {
	return spillway.Ticket{By: (*settledBy)(t), Epoch: uint64(t.clock.since(sent)), Criticality: c}
}

// Closed reports whether nothing limits the calls of a class to a route: [StateClosed]. It
// counts nothing.
func (t *Routes) Closed(c spillway.Criticality, of Route) bool {
	return t.limited.Load() == 0 || !t.by(c.Index(), of.hash(t.seed)).limits()
}

// Account returns the name under which a budget counts the retries of a route: the name of the
// route if it was served, and otherwise [OtherRoutes].
func (t *Routes) Account(of Route) string {
	if x := t.routes.find(of.hash(t.seed)); x != nil {
		return x.name
	}
	return OtherRoutes
}

// Settle settles the ticket of a call that was sent at one time and has ended at another. A call
// that timed out counts as rejected, with three exceptions: it waited for less than calls of its
// route usually take, calls of the route that were sent later were served in less than a tenth of
// its wait, or it waited for 10 s or more while the backend served other calls or the in-flight
// limit was reached. A call that was over its quota counts for its customer only.
func (t *Routes) Settle(sent, now time.Time, ticket *spillway.Ticket, of Route, o spillway.Outcome) {
	by := ticket.By
	ticket.By = nil
	class, epoch := ticket.Criticality.Index(), time.Duration(ticket.Epoch)
	switch {
	case by == nil:
		return
	case !o.Informs() && o != spillway.OutcomeOverQuota:
		if t.limited.Load() > 0 {
			t.by(class, of.hash(t.seed)).leave(epoch)
		}
		return
	}
	if !t.Timed(o) {
		now = sent
	}
	e := ended{
		at: t.clock.heard(now), sent: epoch, took: now.Sub(sent),
		class: class, outcome: o, accepted: o.Accepted(), route: of.hash(t.seed),
	}
	if ticket.State != 0 && (len(t.customers.load().order) > 0 || o == spillway.OutcomeOverQuota) {
		t.charge(&e, ticket.State, of)
	}
	x := t.routes.find(e.route)
	switch {
	case o == spillway.OutcomeOverQuota:
	case o == spillway.OutcomeTimedOut && t.explains(x, &e):
		t.by(class, e.route).leave(epoch)
	case e.route == 0:
		t.backend[e.class].settle(e.at, e.sent, e.outcome, 1)
	case x == nil:
		t.settleOther(&e, of)
	default:
		t.settleRoute(&e, x)
	}
	if e.accepted {
		later(&t.activity.served, e.sent, time.Second)
	}
}

// ended is a call that has ended. Its times are durations on the clock.
type ended struct {
	at, sent, took time.Duration
	class          int
	outcome        spillway.Outcome
	accepted       bool
	route          uint64
}

// charge counts a call for the quota of its customer. A call whose customer has no place, and gets
// none, counts for no customer.
func (t *Routes) charge(e *ended, customer uint64, of Route) {
	x := t.customers.find(customer)
	if x == nil && e.outcome == spillway.OutcomeOverQuota {
		x = t.customers.add(customer, e.at, *t.config.Load(), &t.limited, of.name)
	}
	if x == nil {
		return
	}
	later(&x.used, e.at, time.Second)
	if e.accepted || e.outcome == spillway.OutcomeOverQuota {
		x.classes[e.class].settle(e.at, e.sent, e.outcome, 1)
	}
}

// settleOther settles a call of a route that has no place. If the backend accepted it, the route
// gets one.
func (t *Routes) settleOther(e *ended, of Route) {
	margin := 1
	// served is exact to a second only.
	if served := t.activity.served.Load(); served > 0 && e.at-time.Duration(served) <= 2*time.Second {
		margin = othersMargin
	}
	var x *place
	if e.accepted {
		x = t.routes.add(e.route, e.at, *t.config.Load(), &t.limited, of.name)
	}
	// An accept for which the route gets a place counts for the others only if it may end their
	// limit.
	if others := &t.others[e.class]; x == nil || others.limits() {
		others.settle(e.at, e.sent, e.outcome, margin)
	}
	if x != nil {
		t.settleRoute(e, x)
	}
}

// settleRoute settles a call of a route that has a place.
func (t *Routes) settleRoute(e *ended, x *place) {
	own := &x.classes[e.class]
	limits := own.limits()
	own.settle(e.at, e.sent, e.outcome, 1)
	later(&x.used, e.at, time.Second)
	switch {
	case limits:
		t.backend[e.class].leave(e.sent)
	case e.accepted:
		t.measure(e, x)
		if x.charged.Load() > 0 && own.rests() {
			x.charged.Store(0)
		}
		t.backend[e.class].settle(e.at, e.sent, e.outcome, 1)
	case x.charged.Add(1) <= charges || t.backend[e.class].limits():
		t.backend[e.class].settle(e.at, e.sent, e.outcome, 1)
	}
}

// Advise passes on the share of the calls of a criticality that the server reports to accept: see
// [Throttle.Advise].
func (t *Routes) Advise(now time.Time, c spillway.Criticality, ratio float64) {
	at := t.clock.heard(now)
	t.backend[c.Index()].advise(at, ratio)
	t.others[c.Index()].advise(at, ratio)
}

// Stats returns what is known at the time now: the totals of all routes and customers, and the
// worst state, greatest probability and lowest limit of the throttles that decide on their calls.
func (t *Routes) Stats(now time.Time) Stats {
	at := t.clock.heard(now)
	s, others := t.backend.stats(at), t.others.stats(at)
	total(&s, others)
	worst(&s, others)
	for i := range s {
		s[i].Requests += others[i].Requests - others[i].Accepts // the backend has the accepts
	}
	t.routes.stats(&s, at)
	t.customers.stats(&s, at)
	return s
}
