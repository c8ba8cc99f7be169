package cost

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/elapsed"
)

// These are the first indexes of keys. Except for the last, they belong to no key.
const (
	background = iota // work that no call explains; counted in seconds
	rejected          // rejected calls
	shared            // calls of all keys without their own index
	named             // index of the first key
)

const (
	// leastIntervals is how many intervals must have calls of a key before its cost is used. The
	// error is not known well after fewer.
	leastIntervals = 5
	// idleKey is how long a key must have no calls before it is replaced; idleLent is the same for
	// a customer that is not known by name.
	idleKey  = 10 * time.Minute
	idleLent = time.Minute
	// maxName is the maximum length of the name of a key, in bytes.
	maxName = 256
)

// An Estimator learns the cost of calls by key. It is safe for concurrent use and must not be
// copied. Make one with [New]. A process should have only one, because it learns from the processor
// time of the process.
type Estimator struct {
	mu     sync.Mutex
	config Config
	clock  elapsed.Clock
	at     time.Duration
	places map[name]int
	keys   []key // indexes below named belong to no key
	lent   int   // keys of customers that are not known by name
	full   bool  // no key can be replaced in this interval
	window window
	filter filter

	accounts accounts
	process  bool // Config.CPU is nil: the time of this process
}

// A name is the name of a key: of a route, or of a customer.
type name struct {
	text  string
	route bool
}

// A key is a route or customer, with what is known of its calls.
type key struct {
	name       name
	lent       bool   // it is a customer that is not known by name
	generation uint32 // number of keys that have had this index, this one included
	// calls is how many calls have ended, and intervals how many intervals had any.
	calls     uint64
	intervals int
	latest    time.Duration // when the latest call began
	used      bool          // cost is charged
	cost      float64       // in units
}

// New returns an Estimator that has learned nothing yet. An error names the field of c that is out
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
	// Customer is the name of the customer that pays. Clients may be able to invent it.
	Customer string
	// Known means that the customer is known by name. It gets its own key with its first call.
	Known bool
	// Route is the name of the route. If it is not "", the cost is learned for the route and not
	// for the customer. Clients must not be able to invent it.
	Route string
}

// A Ticket is a call that runs. It is a plain value. The zero Ticket is none.
type Ticket struct {
	begin      time.Duration
	place      uint32
	generation uint32
	account    reference
	measure    bool
}

// Measure reports whether the processor time of the call should be measured. If it can be, call
// [Estimator.Measured] before [Estimator.Done].
func (t Ticket) Measure() bool { return t.measure }

// OfThisProcess reports whether the Estimator learns from the processor time of this process. Only
// then the time of a single call can be measured, too.
func (e *Estimator) OfThisProcess() bool { return e.process }

// Begin records that a call begins at the time now. If known is set, cost is what such a call costs
// on average, in units. If the call runs, call [Estimator.Done] with the Ticket exactly once. Begin
// allocates only for a new customer or route.
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

// Measured records the processor time that was measured for the call of t. It returns the cost of
// the call in units.
func (e *Estimator) Measured(t Ticket, used time.Duration) (cost float64) {
	cost = used.Seconds() / e.config.Unit.Seconds()
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.accounts.at(t.account); x != nil {
		x.measured(cost)
	}
	return cost
}

// Done records that the call of t has run until the time now.
func (e *Estimator) Done(now time.Time, t Ticket) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at = e.clock.See(now)
	place := int(t.place)
	if place < shared || place >= len(e.keys) {
		return // t is no Ticket of Begin
	}
	if e.keys[place].generation != t.generation {
		place = shared
	}
	e.keys[place].calls++
	e.window.add(place, t.begin, e.at)
}

// Reject records that a call was rejected at the time now. Rejecting a call takes processor time,
// too.
func (e *Estimator) Reject(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.see(now)
	e.window.add(rejected, e.at, e.at)
}

// KeyStats is what is known of the cost of a key.
type KeyStats struct {
	// Key is the name of the customer or route. It is "" for all calls without their own key, whose
	// cost is never used.
	Key string
	// Cost is the processor time of a call, and StandardError its standard error.
	Cost, StandardError time.Duration
	// Used reports whether the error is small enough for Cost to be used.
	Used bool
	// Calls is the number of calls that have ended.
	Calls uint64
}

// Stats is what an [Estimator] has learned.
type Stats struct {
	// Background is the processor time that no call explains, in seconds per second.
	Background float64
	// Rejected is the processor time of a rejected call.
	Rejected time.Duration
	// Keys are all keys, after the one for calls without their own key.
	Keys []KeyStats
}

// Stats returns what e has learned. It allocates.
func (e *Estimator) Stats(now time.Time) Stats {
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

// seconds returns s seconds as a Duration, limited to 146 years.
func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
}

// see moves the clock to the time now, and ends the interval if it has lasted long enough.
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

// learn updates the costs from an interval, and decides which of them are used.
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
		case place == shared: // a mean of many customers must not be charged to any of them
		case k.intervals >= leastIntervals && deviation <= e.config.MaxError*max(cost, unit):
			k.used, k.cost = true, max(cost, deviation)/unit
		case k.used: // the cost stays as it was, unless it is wrong now
			k.cost = min(max(k.cost, (cost-2*deviation)/unit), (cost+2*deviation)/unit)
		}
	}
}

// find returns the index of the key of a call.
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

// lend returns the index of a key for a customer that is not known by name. At most half of the
// keys are for such customers; above that, lend returns shared.
func (e *Estimator) lend(customer string) int {
	if customer == "" || e.lent >= e.config.MaxKeys/2 {
		return shared
	}
	return e.place(name{text: customer}, true)
}

// place returns the index of a key. A new key replaces an idle one if there are MaxKeys, and gets
// the index shared if none is idle.
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

// free removes the key at an index.
func (e *Estimator) free(place int) {
	delete(e.places, e.keys[place].name)
	e.window.forget(place)
	if e.keys[place].lent {
		e.lent--
	}
}

// idle returns the index of a key that had no calls for long, or shared if there is none.
func (e *Estimator) idle() int {
	for place := named; place < len(e.keys); place++ {
		k := &e.keys[place]
		if age := e.at - k.latest; age >= idleKey || k.lent && age >= idleLent {
			return place
		}
	}
	return shared
}
