package shed

import "time"

const (
	// places is how many callers of a class are counted by name: those with more than about
	// 1/512 of its requests. They take 12 kB, while requests of the class are rejected.
	places = 512
	// probes is in how many places a caller is looked for.
	probes = 8
	// unnamed is the number of callers that all callers without a place count as: few, because
	// one client can have many names, and more than one, because many clients may each ask for
	// little.
	unnamed = 8
	// epoch is how often the fair share is computed: after 100 ms in which 32 requests were
	// admitted, or else after 1 s.
	epoch, longEpoch, epochAdmissions = 100 * time.Millisecond, time.Second, 32
	// fade is what an epoch leaves of the counts: they cover about 20 epochs, in which a
	// caller with 1/100 of 500 requests per second sends 10.
	fade   = 0.95
	window = 2 * time.Second // 20 epochs of 100 ms
	// defended is the count from which on a caller keeps its place: it came again.
	defended = 1.5
	// enough is the number of admissions below which no share is computed.
	enough = 8
	// excess is how many fair shares of a caller may compete for what is left. With one,
	// chance would leave capacity unused.
	excess = 2
)

// callers estimates what each caller of a class asks for, and what its fair share is. It
// counts while requests of the class are rejected.
type callers struct {
	active   bool
	last     time.Duration // when a request was last rejected
	began    time.Duration // of the epoch
	admitted int           // in the epoch
	rate     float64       // of admissions per second, over about five epochs
	seconds  float64       // in which demands are counted; these counts fade
	others   caller        // all without a place
	table    []caller
	share    float64 // the fair share; 0: unknown
	least    float64 // the least demand above it
	above    float64 // share of the requests of callers with demands above it
}

// caller is a place in the table.
type caller struct {
	flow   uint64
	demand float64 // requests, which fade
	last   float64 // the same at the end of the last epoch, as the share was computed
}

// end ends an epoch.
func (c *caller) end() { c.last, c.demand = c.demand, c.demand*fade }

// rejected begins to count, or goes on.
func (c *callers) rejected(at time.Duration) {
	if !c.active {
		if c.table == nil {
			c.table = make([]caller, places)
		}
		clear(c.table)
		*c = callers{active: true, began: at, table: c.table}
	}
	c.last = at
}

// advance ends an epoch that is over. Two seconds after the last rejection, counting ends.
func (c *callers) advance(at time.Duration) {
	if d := at - c.began; !c.active || d < epoch || d < longEpoch && c.admitted < epochAdmissions {
		return
	}
	c.measure((at - c.began).Seconds())
	c.active = at-c.last < window
	c.divide()
	c.began, c.admitted = at, 0
	c.seconds *= fade
	c.others.end()
	for i := range c.table {
		c.table[i].end()
	}
}

// measure takes in the admissions of an epoch. Their rate follows faster than the demands: what
// was admitted while a limit was still unknown says little.
func (c *callers) measure(seconds float64) {
	rate := float64(c.admitted) / seconds
	if c.seconds > 0 {
		rate = c.rate + float64(0.2*(rate-c.rate))
	}
	c.rate = rate
	c.seconds += seconds
}

// divide computes the fair share: the demands, cut to it, add up to what was admitted
// (max-min fairness). It is unknown if every request was admitted.
func (c *callers) divide() {
	c.share, c.least, c.above = 0, 0, 0
	admitted := float64(c.rate * c.seconds)
	if admitted < enough {
		return
	}
	for share := 0.0; ; {
		var l split
		l.add(c.others.demand, unnamed, share)
		for i := range c.table {
			if d := c.table[i].demand; d >= defended {
				l.add(d, 1, share)
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

// A split divides demands by a share: the sums of those up to it and above it, and of the
// latter the number of callers and the least.
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

// count counts a request.
func (c *callers) count(flow uint64) {
	if !c.active {
		return
	}
	place := c.find(flow)
	known := place.flow == flow && place.demand >= defended
	if !known {
		c.others.demand++
	}
	switch {
	case flow == 0:
	case place.flow == flow:
		place.demand++
	case place.demand < defended:
		*place = caller{flow: flow, demand: 1}
	}
}

// admit counts an admission.
func (c *callers) admit() {
	if c.active {
		c.admitted++
	}
}

// find returns the place of a caller, or else the one that it may take: that of the caller
// that asks for least.
func (c *callers) find(flow uint64) (found *caller) {
	for i := range uint64(probes) {
		place := &c.table[(flow+i)%places]
		if place.flow == flow {
			return place
		}
		if found == nil || place.demand < found.demand {
			found = place
		}
	}
	return found
}

// judge reports whether a caller asks for no more than its fair share, and otherwise which
// share of its requests may wait.
func (c *callers) judge(flow uint64) (modest bool, pass float64) {
	if !c.shares() {
		return false, 1
	}
	who, callers := &c.others, 1.0*unnamed
	if place := c.find(flow); place.flow == flow && place.demand >= defended {
		who, callers = place, 1
	}
	if max(who.demand, who.last) <= float64(c.share*callers) {
		return true, 1
	}
	return false, min(1, max(excess*c.share, c.least)*callers/max(who.last, 1))
}

// shares reports whether the fair share is known.
func (c *callers) shares() bool { return c.active && c.share > 0 }

// level returns which share of the requests of a caller to reject if this share of its class
// is: of callers within the fair share only what exceeds all requests of the others.
func (c *callers) level(class float64, modest bool) float64 {
	switch {
	case !c.shares():
		return class
	case modest:
		return max(0, class-c.above) / max(1-c.above, 1e-9)
	default:
		return min(1, class/c.above)
	}
}
