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
	// The conversion rounds the product, so that all machines decide alike. A machine that fused
	// the product with the difference would reject calls that other machines admit.
	return max(0, (requests-float64(k*accepts))/(requests+1))
}

// noLimit is stored instead of a probability while nothing is limited.
const noLimit = -1

// enough is the number of calls from which a call rate is computed. With half as many the rate is
// noisier; with twice as many a falling load is noticed some milliseconds later.
const enough = 25

// shortest is the minimum length of a period in which a call rate is measured. It matters above
// 25,000 calls per second. With a shorter one rejections would often take the lock; with a longer
// one a falling load is noticed later.
const shortest = time.Millisecond

// class is the throttle of one criticality. All its times are durations on the clock of the
// Throttle.
type class struct {
	// The fields down to served are read, or added to, without the lock.
	share atomic.Uint64 // the probability of a rejection, or noLimit, as the bits of a float64
	begin atomic.Int64  // when the current period began
	until atomic.Int64  // for how long after begin calls are rejected without the lock; 0: never
	calm  atomic.Int64  // until when accepts only add to served; 0: they do not
	// quick is the number of rejections made without the lock that the window does not have yet.
	quick atomic.Uint64
	// rejection is the error of calls that are rejected at the probability in share.
	rejection atomic.Pointer[spillway.RejectedError]

	served      atomic.Uint64 // accepts counted without the lock that the window does not have yet
	order       order
	mu          sync.Mutex // guards what follows, and writes to share, begin, until and calm
	criticality spillway.Criticality
	cfg         Config
	limiter     limiter
	window      window
	now         time.Duration // the latest time that roll has seen
	requests    float64       // calls since begin, sent or rejected
	period      time.Duration // length of the current period
	pace        pace          // the rate while calls are rare: see slow
	rate        float64       // calls per second, sent or rejected
	credit      float64       // calls that may be sent at once: limit not yet used, at most depth
	filled      time.Duration // when credit was last added
	asked       time.Duration // when a call was last sent, or a limit was last set
	released    float64       // calls to send above the limit: one per accept of a recovery
	rejected    uint64        // calls rejected since the start
	probes      uint64        // calls sent above the limit since the start
	skipped     int           // calls rejected since asked
	rarity      int           // one call of so many is a probe: see rarest
	probed      time.Duration // when the last probe was sent
	together    together      // the calls that are sent along with the last probe
	limited     *atomic.Int32 // number of classes of Routes with a limit; nil: not counted
	counted     bool          // whether limited counts this class
	advice      advice
	advised     atomic.Bool // whether there is advice; read without the lock
	change      change
}

func (c *class) probability() float64 { return math.Float64frombits(c.share.Load()) }

// limits reports whether any call can be rejected.
func (c *class) limits() bool { return c.probability() != noLimit }

// rests reports whether nothing is limited, and no debt of rejections is left (see limiter.debt).
func (c *class) rests() bool { return c.calm.Load() > 0 }

// ask returns nil if a call may be sent, and otherwise its rejection.
func (c *class) ask(at time.Duration, call *spillway.Call, random *atomic.Pointer[func() float64]) error {
	p := c.probability()
	if p < 0 {
		return nil
	}
	var u float64 // a number in [0, 1); at p = 1 any number will do
	if p < 1 {
		u = c.order.place(call, (*random.Load())())
	}
	if c.reject(at, p, u) {
		return c.rejection.Load()
	}
	if p == 1 { // admit may find a lower probability
		u = c.order.place(call, (*random.Load())())
	}
	if p = c.admit(at, u); p > 0 {
		return rejections[c.criticality.Index()].At(100 * p)
	}
	return nil
}

// reject rejects a call without the lock if it can: if u is below the probability, and the
// probability is still valid as its period has not ended. Otherwise admit decides.
func (c *class) reject(at time.Duration, p, u float64) bool {
	if u >= p || uint64(at)-uint64(c.begin.Load()) >= uint64(c.until.Load()) {
		return false
	}
	c.quick.Add(1)
	return true
}

// admit decides on one call while there is a limit, with a u in [0, 1). It returns 0 if the call
// may be sent, and otherwise the share of calls that are rejected.
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

// roll brings the class up to the time at, and returns the time from which the caller goes on. That
// is later than at if another goroutine came first with a later time: time does not go back.
func (c *class) roll(at time.Duration) time.Duration {
	at = max(at, c.now)
	c.now = at
	if c.served.Load() > 0 { // they belong to the bucket that the window is still at
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
	// A period of 0 lasts for 1 ns, as there is no rate without a duration.
	if begin := time.Duration(c.begin.Load()); at-begin >= max(c.period, 1) {
		c.measure(at, begin)
		c.limiter.pass(&c.cfg, at, at-begin)
		c.decide()
	}
	c.expire(at)
	return at
}

// measure ends the period that began at begin, and sets the call rate from its calls.
func (c *class) measure(at, begin time.Duration) {
	missed := !c.slow() || c.requests >= enough // the pace has not seen all calls
	elapsed := (at - begin).Seconds()
	// One call alone has no rate: it may be the only one for a long time.
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

// slow reports whether calls are so rare that their rate is derived from the gaps between them.
func (c *class) slow() bool { return c.rate*c.cfg.quarter().Seconds() < enough }

// fill adds the credit for the time since the last fill: limit times that time, up to depth.
func (c *class) fill(at time.Duration) {
	if passed := at - c.filled; passed > 0 {
		c.credit = min(c.credit+float64(c.limiter.limit*passed.Seconds()), c.depth())
		c.filled = at
	}
}

// decide sets the probability: 1 - limit/rate, which is equation 21-1 with rates in place of
// counts. While the credit is below half of its depth it is higher, so that some credit is left for
// a time with fewer calls.
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
		// It is stored before share, because calls are rejected from then on.
		c.rejection.Store(rejections[c.criticality.Index()].At(100 * p))
	}
	c.share.Store(math.Float64bits(p))
	c.change.state = stateOf(p, l)
}

// depth is the maximum of credit, in calls.
func (c *class) depth() float64 {
	return max(1, float64(c.cfg.MinRequests)) + float64(c.limiter.limit*c.cfg.quarter().Seconds())
}

// settle counts the result of a call that was sent at the given time. A limit begins after margin
// times MinRequests rejections instead of MinRequests.
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

// notAccepted counts a call that the backend did not accept. The caller holds the lock.
func (c *class) notAccepted(at, sent time.Duration, margin int) {
	cfg, was := c.cfg, c.limiter.phase
	cfg.MinRequests *= margin
	if c.limiter.notAccepted(&cfg, at, sent, c.window.acceptsPerSecond(at)) {
		c.begun(at, was != open)
	}
}

// rest sets calm, the time until which accepts need no lock, as they change nothing but their
// number. They do so while nothing is limited, no debt of rejections is left, and there is no
// advice. calm ends with the bucket of the window, and after one resolution at the latest, so that
// the time of the last accept is known that exactly. The caller holds the lock.
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

// start begins a period. It lasts until enough calls are expected, at most a quarter of a
// ProbeInterval, and not beyond the time when a probe is due.
func (c *class) start(at time.Duration) {
	c.begin.Store(int64(at))
	c.period = c.cfg.quarter()
	if c.rate > 0 {
		c.period = min(c.period, max(shortest, time.Duration(enough*float64(time.Second)/c.rate)))
	}
	if due := c.asked + c.cfg.ProbeInterval - at; c.limiter.phase == silent && due > 0 {
		c.period = min(c.period, due)
	}
	if c.advises() { // the probability changes with each call
		c.period = 0
	}
	if c.slow() {
		c.until.Store(0)
		return
	}
	c.until.Store(int64(c.period))
}

// begun prepares the class for a limit that was just set. was says whether there was one before.
func (c *class) begun(at time.Duration, was bool) {
	c.credit, c.filled, c.asked = 0, at, at
	if !was {
		c.rate, c.requests, c.limiter.demand = 0, 0, 0
		c.start(at)
	}
}
