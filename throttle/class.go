package throttle

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// Probability is equation 21-1: the share of calls to reject after requests calls, when the
// backend has accepted accepts. It is at least 0 and less than 1 for counts that are not
// negative.
func Probability(requests, accepts, k float64) float64 {
	// The product is rounded, so that all machines decide alike: one that fused it with
	// the difference would reject calls that the others admit.
	return max(0, (requests-float64(k*accepts))/(requests+1))
}

// noLimit in place of a probability says that nothing is limited.
const noLimit = -1

// enough is how many calls make a rate. With half as many it is noisier, with twice as
// many a load that falls is seen later; both by some milliseconds' calls.
const enough = 25

// shortest is the shortest time in which a rate is measured. It counts above 25,000 calls per
// second: with less, rejections would often take the lock; with more, a load that falls is seen later.
const shortest = time.Millisecond

// class is the throttle of one criticality.
type class struct {
	// What Admit reads without the lock. Written with the lock held.
	share atomic.Uint64 // the probability of a rejection, or noLimit, as bits
	begin atomic.Int64  // when the present period began
	until atomic.Int64  // how long it is
	calm  atomic.Int64  // until when accepts are only counted, without the lock
	// quick counts rejections that were made without the lock and not yet counted.
	quick atomic.Uint64
	// rejection is the error for a rejection with the probability share.
	rejection atomic.Pointer[spillway.RejectedError]

	served      atomic.Uint64 // accepts that were counted without the lock
	order       order
	mu          sync.Mutex
	criticality spillway.Criticality
	cfg         Config
	limiter     limiter
	window      window
	now         time.Duration
	requests    float64 // calls since begin
	period      time.Duration
	pace        pace
	rate        float64 // of calls, per second
	credit      float64 // calls that may be sent at once
	filled      time.Duration
	asked       time.Duration // when a call was last sent
	released    float64       // calls to be sent whatever the limit says
	rejected    uint64        // ever
	probes      uint64        // let through past the limit, ever
	skipped     int           // calls rejected since
	rarity      int           // how many calls are made for the next probe
	probed      time.Duration // when the last probe was sent
	together    together      // what is sent with it
	limited     *atomic.Int32 // counts the classes that limit anything, or nil
	counted     bool          // there
	advice      advice
	advised     atomic.Bool // there is advice
	change      change
}

func (c *class) probability() float64 { return math.Float64frombits(c.share.Load()) }

// limits reports whether calls are decided on one by one.
func (c *class) limits() bool { return c.probability() != noLimit }

// rests reports whether nothing is limited, and no rejection waits to be outweighed.
func (c *class) rests() bool { return c.calm.Load() > 0 }

// ask returns nil if a call may be sent, or else why not.
func (c *class) ask(at time.Duration, call *spillway.Call, random *atomic.Pointer[func() float64]) error {
	p := c.probability()
	if p < 0 {
		return nil
	}
	var u float64 // below 1, whatever is drawn
	if p < 1 {
		u = c.order.place(call, (*random.Load())())
	}
	if c.reject(at, p, u) {
		return c.rejection.Load()
	}
	if p == 1 { // admit may find a lower one
		u = c.order.place(call, (*random.Load())())
	}
	if p = c.admit(at, u); p > 0 {
		return rejections[c.criticality.Index()].At(100 * p)
	}
	return nil
}

// reject decides without the lock, where it can, that a call is not sent: the
// probability is up to date and u is below it.
func (c *class) reject(at time.Duration, p, u float64) bool {
	if u >= p || uint64(at)-uint64(c.begin.Load()) >= uint64(c.until.Load()) {
		return false
	}
	c.quick.Add(1)
	return true
}

// admit decides on one call while there is a limit. u is uniform in [0, 1). It
// returns the share of calls that are rejected if this one is.
func (c *class) admit(at time.Duration, u float64) (rejected float64) {
	c.mu.Lock()
	defer c.unlock()
	sent := at
	at = c.roll(at)
	if c.probability() == noLimit {
		return 0
	}
	c.requests++
	switch {
	case c.requests >= enough && c.together.left == 0:
		c.until.Store(int64(c.period)) // later calls in this period need no lock
	case c.slow():
		c.pace.call(at)
		c.rate = c.pace.rate()
		c.decide()
	}
	if !c.take(at, u) {
		c.window.add(counts{rejected: 1})
		c.rejected++
		c.skipped++
		return max(c.probability(), 0.01)
	}
	c.asked, c.skipped = at, 0
	if c.limiter.phase != open {
		c.limiter.pending.send(sent)
	}
	return 0
}

// roll brings all up to the time at, and returns the time that it is then: goroutines
// come out of order, and time does not go back.
func (c *class) roll(at time.Duration) time.Duration {
	at = max(at, c.now)
	c.now = at
	if c.served.Load() > 0 { // in the bucket that the window is still at
		c.window.add(counts{accepts: float64(c.served.Swap(0))})
		c.limiter.hear(min(at, time.Duration(c.calm.Load())))
	}
	c.window.advance(at)
	if c.quick.Load() > 0 {
		quick := c.quick.Swap(0)
		c.window.add(counts{rejected: float64(quick)})
		c.rejected += quick
		c.skipped += int(quick)
		c.requests += float64(quick)
	}
	c.limiter.idle(&c.cfg, at)
	if c.limiter.phase != open { // else there is no limit, and begun sets the first credit
		c.fill(at)
		c.ripen(at)
	}
	if begin := time.Duration(c.begin.Load()); at-begin >= max(c.period, 1) { // no time has no rate
		c.measure(at, begin)
		c.limiter.pass(&c.cfg, at, at-begin)
		c.decide()
	}
	c.expire(at)
	return at
}

// measure ends a period that began at begin.
func (c *class) measure(at, begin time.Duration) {
	missed := !c.slow() || c.requests >= enough // the pace has not seen all calls
	elapsed := (at - begin).Seconds()
	// One call does not make a rate: it may be the only one for long.
	c.limiter.demand = max(0, c.requests-1) / elapsed
	if c.rate = c.limiter.demand; c.slow() {
		if missed {
			c.pace = pace{last: at, gaps: steadyGaps, mean: elapsed / max(1, c.requests)}
		}
		c.rate = c.pace.rate()
	}
	c.order.learn()
	c.requests = 0
	c.start(at)
}

// slow reports whether calls are so few that the rate is that of the gaps between them.
func (c *class) slow() bool { return c.rate*c.cfg.quarter().Seconds() < enough }

// fill adds the credit of the time that has passed.
func (c *class) fill(at time.Duration) {
	if passed := at - c.filled; passed > 0 {
		c.credit = min(c.credit+float64(c.limiter.limit*passed.Seconds()), c.depth())
		c.filled = at
	}
}

// decide sets the probability: equation 21-1 with rates, of calls and of what may be
// sent. Fewer are sent while the credit is below half of its depth, to keep
// some for the time when fewer calls are made.
func (c *class) decide() {
	p := float64(noLimit)
	l := &c.limiter
	switch {
	case c.advises():
		if p = Probability(c.known()); p == 0 && l.phase == open {
			p = noLimit
		}
	case l.phase == open:
	case l.phase == silent && l.streak.accepts == 0:
		p = 1
	case c.released >= 1, c.rate <= l.limit:
		p = 0
	default:
		p = 1 - float64(l.limit/c.rate*min(1, 2*max(0, c.credit)/c.depth()))
	}
	if p > 0 {
		c.rejection.Store(rejections[c.criticality.Index()].At(100 * p)) // before a rejection needs it
	}
	c.share.Store(math.Float64bits(p))
	c.change.state = stateOf(p, l)
}

// depth is the most credit.
func (c *class) depth() float64 {
	return max(1, float64(c.cfg.MinRequests)) + float64(c.limiter.limit*c.cfg.quarter().Seconds())
}

// settle counts the result of a call that was sent at the given time. The margin is how many times
// MinRequests the evidence of an overload has to be.
func (c *class) settle(at, sent time.Duration, o spillway.Outcome, margin int) {
	accepted := o.Accepted()
	if accepted && at < time.Duration(c.calm.Load()) {
		c.served.Add(1)
		return
	}
	c.mu.Lock()
	defer c.unlock()
	l := &c.limiter
	counted := l.pending.end(sent)
	at = c.roll(at)
	was := l.phase
	c.together.abandoned = false
	if accepted {
		c.rarity = 0
	}
	switch {
	case accepted && counted:
		c.window.add(counts{accepts: 1})
		l.confirm(at)
	case accepted:
		c.window.add(counts{accepts: 1})
		if l.accept(&c.cfg, at, sent) {
			c.released++
		}
	default:
		c.window.add(counts{byBackend: 1, longest: waited(at, sent, o)})
		if counted {
			l.recant()
		}
		if c.released > 0 {
			c.released = 0
		}
		c.notAccepted(at, sent, margin)
	}
	if was != open || l.phase != open || c.advised.Load() {
		c.decide()
	}
}

// notAccepted takes in that the backend did not accept a call. The lock is held.
func (c *class) notAccepted(at, sent time.Duration, margin int) {
	cfg, was := c.cfg, c.limiter.phase
	cfg.MinRequests *= margin
	if c.limiter.notAccepted(&cfg, at, sent, c.window.acceptsPerSecond(at)) {
		c.begun(at, was != open)
	}
}

// rest says until when accepts change nothing but their number: while nothing is limited, no
// rejection waits to be outweighed, and no advice counts. It ends after one resolution, as the
// time of the last accept is known that exactly, or with the bucket of the window. The lock is
// held.
func (c *class) rest() {
	calm := time.Duration(0)
	if c.limiter.phase == open && c.limiter.debt.sent == 0 && !c.advised.Load() {
		calm = min(c.now+resolution, c.window.end)
	}
	if int64(calm) != c.calm.Load() {
		c.calm.Store(int64(calm))
	}
	c.count()
}

// start begins a period in which some calls are made, of a quarter of an interval at
// most, and which ends when a probe is due.
func (c *class) start(at time.Duration) {
	c.begin.Store(int64(at))
	c.period = c.cfg.quarter()
	if c.rate > 0 {
		c.period = min(c.period, max(shortest, time.Duration(enough*float64(time.Second)/c.rate)))
	}
	if due := c.asked + c.cfg.ProbeInterval - at; c.limiter.phase == silent && due > 0 {
		c.period = min(c.period, due)
	}
	if c.advises() { // the next call has another probability
		c.period = 0
	}
	if c.slow() {
		c.until.Store(0)
		return
	}
	c.until.Store(int64(c.period))
}

// begun starts to limit what is sent, or starts again.
func (c *class) begun(at time.Duration, was bool) {
	c.credit, c.filled, c.asked = 0, at, at
	if !was {
		c.rate, c.requests, c.limiter.demand = 0, 0, 0
		c.start(at)
	}
}
