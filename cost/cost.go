package cost

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/elapsed"
)

// The places of what is no key.
const (
	background = iota // seconds
	rejected          // calls
	shared            // calls of keys without a place
	named             // the first key with a place
)

const (
	// leastIntervals is in how many intervals a key must have been before its cost is used: the error of fewer
	// is not known well.
	leastIntervals = 5
	// idleKey is how long a key has no calls before its place is given to another; idleLent is that of a customer
	// that is not known by name.
	idleKey  = 10 * time.Minute
	idleLent = time.Minute
	// maxName is the maximum length of the name of a key with a place.
	maxName = 256
)

// An Estimator learns the cost of calls by key. It is safe for concurrent use and must not be
// copied; make one with [New]. There should be one in a process, as there is one processor
// time.
type Estimator struct {
	mu     sync.Mutex
	config Config
	clock  elapsed.Clock
	at     time.Duration
	places map[name]int
	keys   []key // the first ones are no keys
	lent   int   // places of customers that are not known by name
	full   bool  // no place becomes free in this interval
	window window
	filter filter

	accounts accounts
	process  bool // the processor time is that of this process
}

// A name says whose cost is learned: a route, or a customer.
type name struct {
	text  string
	route bool
}

// key is what is known of the calls of a key.
type key struct {
	name       name
	lent       bool   // the customer is not known by name
	generation uint32 // of the keys that had this place
	calls      uint64
	intervals  int           // with calls
	latest     time.Duration // call
	used       bool
	cost       float64 // that is used, in units
}

// New returns an Estimator that knows no costs, or an error that names the field of c that is out
// of range.
func New(c Config) (*Estimator, error) {
	process := c.CPU == nil
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Estimator{config: c, process: process, places: make(map[name]int, c.MaxKeys), keys: make([]key, named, named+c.MaxKeys)}
	e.filter.init(named + c.MaxKeys)
	e.window.init(named + c.MaxKeys)
	e.accounts.init()
	return e, nil
}

// A Call says whose cost is learned.
type Call struct {
	// Customer is who pays. It may be a name that clients invent.
	Customer string
	// Known says that the customer is known by name: it gets a place before the others.
	Known bool
	// Route, if not "", is learned in place of the customer. Clients must not be able to invent it.
	Route string
}

// A Ticket is a call that runs. It is a plain value.
type Ticket struct {
	begin      time.Duration
	place      uint32
	generation uint32
	account    reference
	measure    bool
}

// Measure reports whether the processor time of the call should be measured, if that is possible: then
// call [Estimator.Measured] before [Estimator.Done].
func (t Ticket) Measure() bool { return t.measure }

// OfThisProcess reports whether the Estimator learns from the processor time of this process, which can
// also be measured for a single call.
func (e *Estimator) OfThisProcess() bool { return e.process }

// Begin counts the begin of a call at the time now. If known is set, cost is what the call will cost on average, in
// units. Call [Estimator.Done] with the Ticket exactly once if the call has run. Begin allocates only for a new
// customer or route.
func (e *Estimator) Begin(now time.Time, c Call) (t Ticket, cost float64, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.see(now)
	place := e.find(c)
	k := &e.keys[place]
	if c.Route == "" && k.used {
		k.latest = e.at
		return Ticket{begin: e.at, place: uint32(place), generation: k.generation}, k.cost, true
	}
	account, at := e.accounts.of(c.Customer)
	if place == shared && account.begin() && c.Route == "" {
		place = e.lend(c.Customer)
		k = &e.keys[place]
	}
	k.latest = e.at
	t = Ticket{begin: e.at, place: uint32(place), generation: k.generation, account: at}
	t.measure = account.measures < leastMeasured || e.config.Rand() < sampled
	if account.measures > 0 {
		return t, account.mean, true
	}
	return t, k.cost, k.used
}

// Measured takes in the processor time that the call of t was measured to use, and returns its cost in units.
func (e *Estimator) Measured(t Ticket, used time.Duration) (cost float64) {
	cost = used.Seconds() / e.config.Unit.Seconds()
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.accounts.at(t.account); x != nil {
		x.measured(cost)
	}
	return cost
}

// Done counts a call that has run from its Begin to the time now.
func (e *Estimator) Done(now time.Time, t Ticket) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at = e.clock.See(now)
	place := int(t.place)
	if place < shared || place >= len(e.keys) {
		return // not a Ticket of Begin
	}
	if e.keys[place].generation != t.generation {
		place = shared
	}
	e.keys[place].calls++
	e.window.add(place, t.begin, e.at)
}

// Reject counts a call that was rejected at the time now. The process takes time for such a call, too.
func (e *Estimator) Reject(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.see(now)
	e.window.add(rejected, e.at, e.at)
}

// KeyStats says what is known of the cost of a key.
type KeyStats struct {
	// Key is the customer or route: "" for all calls without a place. Their cost is never used.
	Key string
	// Cost is the processor time of a call, and StandardError is that of Cost.
	Cost, StandardError time.Duration
	// Used says whether the error is small enough for Cost to be used.
	Used bool
	// Calls is the number of calls that have ended.
	Calls uint64
}

// Stats is what an [Estimator] has learned.
type Stats struct {
	// Background is the processor time per second that no call explains.
	Background float64
	// Rejected is the processor time of a rejected call.
	Rejected time.Duration
	// Keys are the keys with calls, the shared one first.
	Keys []KeyStats
}

// Stats returns what e has learned. It allocates.
func (e *Estimator) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Stats{Background: e.filter.cost[background], Rejected: seconds(e.filter.cost[rejected])}
	for place := shared; place < len(e.keys); place++ {
		k := &e.keys[place]
		s.Keys = append(s.Keys, KeyStats{
			Key: k.name.text, Cost: seconds(e.filter.cost[place]), StandardError: seconds(e.filter.deviation(place)),
			Used: k.used, Calls: k.calls,
		})
	}
	return s
}

// seconds returns s as a Duration, the largest one if it is more.
func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
}

// see takes note of the time, and ends the interval if it is over.
func (e *Estimator) see(now time.Time) {
	e.at = e.clock.See(now)
	if e.window.open && e.at-e.window.from() < e.config.Interval {
		return
	}
	e.full = false
	used, err := e.config.CPU()
	if x := e.window.end(e.at, used, err == nil); x != nil && x.valid(e.config.Interval) {
		e.learn(x)
	}
	e.window.begin(e.at, used, err == nil)
}

// learn takes in an interval, and decides which costs are used.
func (e *Estimator) learn(x *interval) {
	x.counts[background] = (x.to - x.from).Seconds()
	e.filter.learn(x.counts[:len(e.keys)], x.used.Seconds())
	unit := e.config.Unit.Seconds()
	for place := shared; place < len(e.keys); place++ {
		k := &e.keys[place]
		if x.counts[place] > 0 {
			k.intervals++
		}
		cost, deviation := e.filter.cost[place], e.filter.deviation(place)
		switch {
		case place == shared: // it is a mean of many customers, and charged to none of them
		case k.intervals >= leastIntervals && deviation <= e.config.MaxError*max(cost, unit):
			k.used, k.cost = true, max(cost, deviation)/unit
		case k.used: // what was known before, unless it is wrong now
			k.cost = min(max(k.cost, (cost-2*deviation)/unit), (cost+2*deviation)/unit)
		}
	}
}

// find returns the place of a call.
func (e *Estimator) find(c Call) int {
	switch {
	case c.Route != "":
		return e.place(name{c.Route, true}, false)
	case c.Customer == "":
		return shared
	case c.Known:
		return e.place(name{text: c.Customer}, false)
	}
	if place, ok := e.places[name{text: c.Customer}]; ok {
		return place
	}
	return shared
}

// lend gives a place to a customer that is not known by name. At least half of all places stay for the others.
func (e *Estimator) lend(customer string) int {
	if customer == "" || e.lent >= e.config.MaxKeys/2 {
		return shared
	}
	return e.place(name{text: customer}, true)
}

// place returns the place of a key, after making room for a new one.
func (e *Estimator) place(n name, lent bool) int {
	if place, ok := e.places[n]; ok {
		return place
	}
	place := len(e.keys)
	switch {
	case e.full || len(n.text) > maxName:
		return shared
	case place < cap(e.keys):
		e.keys = append(e.keys, key{})
	default:
		if place = e.idle(); place == shared {
			e.full = true
			return shared
		}
		e.free(place)
	}
	e.filter.forget(place)
	n.text = strings.Clone(n.text)
	e.keys[place] = key{name: n, lent: lent, generation: e.keys[place].generation + 1}
	e.places[n] = place
	if lent {
		e.lent++
	}
	return place
}

// free takes a place from its key.
func (e *Estimator) free(place int) {
	delete(e.places, e.keys[place].name)
	e.window.forget(place)
	if e.keys[place].lent {
		e.lent--
	}
}

// idle returns the place of a key without calls for long, the shared place if there is
// none.
func (e *Estimator) idle() int {
	for place := named; place < len(e.keys); place++ {
		k := &e.keys[place]
		if age := e.at - k.latest; age >= idleKey || k.lent && age >= idleLent {
			return place
		}
	}
	return shared
}
