package shed

import (
	"math"
	"time"
)

const (
	// places is how many callers of a class are counted by name: those with more than about
	// 1/512 of its requests. They take 41 kB, while requests of the class are rejected.
	places = 512
	// probes is the number of places in which find looks for a caller.
	probes = 8
	// unnamed is the number of callers that all callers without a place count as: few, because
	// one client can have many names, and more than one, because many clients may each ask for
	// little.
	unnamed = 8
	// epoch is how often the fair share is computed: after 100 ms in which 32 requests were
	// admitted, or else after 500 ms.
	epoch, longEpoch, epochAdmissions = 100 * time.Millisecond, 500 * time.Millisecond, 32
	// fade is what an epoch leaves of the counts: they cover about 20 epochs, in which a
	// caller with 1/100 of 500 requests per second sends 10.
	fade   = 0.95
	window = 2 * time.Second // 20 epochs of 100 ms
	// defended is the number of requests, which fades, from which on a caller keeps its place. It is
	// above 1, so a caller must come twice.
	defended = 1.5
	// enough is the number of admissions below which no share is computed.
	enough = 8
	// excess is the number of fair shares of each caller that may compete for what is left. With
	// one, chance would leave capacity unused; with two, a caller that asks for little more than
	// its share gets less than a greedy one.
	excess = 1.5
)

// callers estimates what each caller of a class asks for, and what its fair share is, in
// seconds at work. It counts while requests of the class are rejected.
type callers struct {
	active   bool
	episode  uint64        // counts how often active was set
	taken    uint64        // counts how often a place was taken
	last     time.Duration // when a request was last rejected
	began    time.Duration // of the epoch
	admitted int           // in the epoch
	recent   float64       // admissions, which fade
	rate     float64       // requests at work, over about five epochs
	carried  float64       // used of both groups, as it was after the last epoch
	seconds  float64       // in which demands are counted; these counts fade
	groups   [2]caller     // all callers: those above the fair share, and those within it
	others   caller        // all without a place
	table    []caller
	share    float64 // the fair share; 0: unknown
	least    float64 // the least demand above it
	above    float64 // share of the demand of callers with demands above it
	needs    peak    // places that callers within the share needed at the same time

	// Requests that began before the last two turns are parked.
	turned time.Duration
	turns  int
}

// rejected begins to count, or goes on. within is 1 if the caller is within its share, else 0.
func (c *callers) rejected(at time.Duration, within int) {
	if !c.active {
		if c.table == nil {
			c.table = make([]caller, places)
		}
		clear(c.table)
		*c = callers{
			active: true, episode: c.episode + 1, taken: c.taken, table: c.table,
			began: at, turned: at,
		}
	}
	c.last = at
	c.need(at, within)
}

// need notes how many places callers within the share hold, or need if one was rejected.
func (c *callers) need(at time.Duration, rejected int) {
	c.needs.add(at, c.groups[1].held()+rejected)
}

// advance ends an epoch that is over. Two seconds after the last rejection, counting ends. Requests
// that are older than parked do not count; 0 means that all count.
func (c *callers) advance(at, parked time.Duration) {
	if d := at - c.began; !c.active || d < epoch || d < longEpoch && c.admitted < epochAdmissions {
		return
	}
	length := (at - c.began).Seconds()
	c.active = at-c.last < window
	turn := parked > 0 && at-c.turned >= parked
	c.each(func(w *caller) { w.work(length, turn) })
	if turn {
		c.turned = at
		c.turns++
	}
	c.measure(length)
	c.divide()
	c.each((*caller).end)
	c.recent, c.seconds, c.carried = c.recent*fade, c.seconds*fade, c.used()
	c.began, c.admitted = at, 0
}

// each calls do for both groups and all callers.
func (c *callers) each(do func(*caller)) {
	do(&c.groups[0])
	do(&c.groups[1])
	do(&c.others)
	for i := range c.table {
		do(&c.table[i])
	}
}

// used returns the seconds at work of all callers.
func (c *callers) used() float64 { return c.groups[0].used + c.groups[1].used }

// measure updates the rate with the work of an epoch. The rate follows faster than the demands,
// because the work that was admitted before the limit was known soon has no meaning.
func (c *callers) measure(seconds float64) {
	rate := (c.used() - c.carried) / seconds
	if c.seconds > 0 {
		rate += float64((c.rate - rate) * math.Pow(0.8, seconds/epoch.Seconds()))
	}
	c.rate = rate
	c.seconds += seconds
}

// divide computes the fair share: the demands, cut to it, add up to the work that was admitted
// (max-min fairness). It is unknown if every request was admitted.
func (c *callers) divide() {
	c.share, c.least, c.above = 0, 0, 0
	admitted := float64(c.rate * c.seconds)
	if c.recent < enough || admitted <= 0 {
		return
	}
	for share := 0.0; ; {
		var l split
		l.add(c.others.demand(0), unnamed, share)
		for i := range c.table {
			if w := &c.table[i]; w.known() {
				l.add(w.demand(0), 1, share)
			}
		}
		if l.callers == 0 {
			return
		}
		next := (admitted - l.below) / l.callers
		if next <= share*(1+1e-9) {
			c.share, c.least, c.above = share, l.least, l.above/(l.above+l.below)
			return
		}
		share = next
	}
}

// A split divides the demands of callers by a share. below is the sum of the demands up to the
// share, and above the sum of the others. callers is the number of callers with a demand above the
// share, and least the least of these demands.
type split struct{ below, above, callers, least float64 }

func (l *split) add(demand, callers, share float64) {
	if demand <= float64(share*callers) {
		l.below += demand
		return
	}
	l.above += demand
	if each := demand / callers; l.callers == 0 || each < l.least {
		l.least = each
	}
	l.callers += callers
}

// count counts a request of a caller. guess is how many seconds it is expected to take.
func (c *callers) count(flow uint64, guess float64) {
	if !c.active {
		return
	}
	who, place := c.who(flow)
	switch {
	case flow == 0:
	case who == place:
	case place.flow == flow: // it came again
		c.others.asked = max(0, c.others.asked-place.asked)
		who = place
	case !place.known():
		c.taken++
		*place = caller{flow: flow, asked: 1, taken: c.taken}
	}
	who.asked++
	who.guess = guess
}

// admit counts an admission.
func (c *callers) admit() {
	if c.active {
		c.admitted++
		c.recent++
	}
}

// who returns the entry under which the requests of a caller are counted: its own entry in the
// table, or c.others. place is its entry in the table, or the one that it may take.
func (c *callers) who(flow uint64) (who, place *caller) {
	place = c.find(flow)
	if place.flow == flow && place.known() {
		return place, place
	}
	return &c.others, place
}

// find returns the place of a caller, or else the one that it may take: that of the caller
// that asks for least.
func (c *callers) find(flow uint64) (found *caller) {
	for i := range uint64(probes) {
		place := &c.table[(flow+i)%places]
		if place.flow == flow {
			return place
		}
		if found == nil || place.asked < found.asked {
			found = place
		}
	}
	return found
}

// judge reports whether a caller asks for no more than its fair share, and otherwise which
// share of its requests may wait.
func (c *callers) judge(flow uint64, at time.Duration) (within bool, pass float64) {
	if !c.shares() {
		return false, 1
	}
	who, callers := &c.others, 1.0*unnamed
	if known, place := c.who(flow); known == place {
		who, callers = place, 1
	}
	if max(who.last, who.demand((at-c.began).Seconds())) <= float64(c.share*callers) {
		return true, 1
	}
	if who.last == 0 {
		return false, 1
	}
	return false, min(1, max(excess*c.share, c.least)*callers/who.last)
}

// shares reports whether the fair share is known.
func (c *callers) shares() bool { return c.active && c.share > 0 }

// level returns which share of the requests of a caller to reject. class is the share to reject of
// all requests of its class. Callers within the fair share lose requests only if it is not enough
// to reject all requests of the others.
func (c *callers) level(class float64, within bool) float64 {
	switch {
	case !c.shares():
		return class
	case within:
		return max(0, class-c.above) / max(1-c.above, 1e-9)
	default:
		return min(1, class/c.above)
	}
}

// kept returns how many free places of a limit callers above the share must leave to callers within
// it, so that these need not wait for longer than wait. That is the number of places that they
// recently needed at the same time, minus the places that they hold, minus the places that requests
// of callers above the share are about to free. Quick requests free enough of them.
func (c *callers) kept(at, wait time.Duration, free float64) float64 {
	if !c.shares() {
		return 0
	}
	needed := float64(c.needs.value(at) - c.groups[1].held())
	return max(0, needed-c.groups[0].leaves(free, wait))
}
