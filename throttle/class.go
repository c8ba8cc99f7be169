package throttle

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// The values of class.gate that are no time.
const (
	open    = -1 // nothing is limited, and accepts are only counted
	watched = -2 // nothing is limited, and accepts take the lock
)

// class is the throttle of one criticality.
type class struct {
	gate    atomic.Int64  // until when calls are rejected without the lock, or open, or watched
	served  atomic.Uint64 // accepts that were counted without the lock
	quick   atomic.Uint64 // rejections, likewise
	refusal atomic.Pointer[spillway.RejectedError]

	mu          sync.Mutex
	criticality spillway.Criticality
	cfg         Config
	state       State
	now         time.Duration // the latest time
	active      time.Duration // when a call was last made or settled
	slow        memory
	fast        run
	changed     time.Duration // results of calls that were sent until then are old news
	stale       bool          // there was no other one since
	answered    bool          // the last probe has ended
	slowest     time.Duration // that a rejection took since the backend last accepted a call
	credit      float64       // calls that may be sent
	due         float64       // credit at which the next one is
	asked       time.Duration // when a call was last sent
	skipped     float64       // calls since
	short       time.Duration // when a call was last rejected here
	streak      streak
	advice      advice
	rejected    uint64 // ever
	probed      uint64 // ever
	change      change
	limited     *atomic.Int32 // counts the classes that limit anything, or nil
	counted     bool          // there
}

// limits reports whether calls are decided on one by one.
func (c *class) limits() bool { return c.gate.Load() >= 0 }

// decide returns nil if a call may be sent, or else why not.
func (c *class) decide(at time.Duration, random func() float64) error {
	switch gate := c.gate.Load(); {
	case gate < 0:
		return nil
	case int64(at) < gate:
		c.quick.Add(1)
		return c.refusal.Load()
	}
	return c.admit(at, random())
}

// admit decides on one call. u is uniform in [0, 1). It returns nil, or why the call is rejected.
func (c *class) admit(at time.Duration, u float64) error {
	c.mu.Lock()
	defer c.unlock()
	at = c.roll(at)
	c.active = at
	switch {
	case c.advises():
		if u >= c.probability() {
			return nil
		}
	case c.state == StateClosed:
		return nil
	default:
		if c.skipped++; c.take(at, u) {
			c.asked, c.skipped = at, 0
			return nil
		}
	}
	c.rejected++
	c.short = at
	c.slow.requests++
	return c.rejection()
}

// take reports whether a call may be sent while there is a limit.
func (c *class) take(at time.Duration, u float64) bool {
	if c.state == StateThrottling && c.credit > c.due {
		c.credit--
		c.due = u // a fixed one would reject the same callers again and again
		return true
	}
	waited := at - c.asked
	if !c.probes(waited) {
		return false
	}
	c.credit = 0
	c.probed++
	if c.state == StateProbing && !c.answered && waited >= doubt*c.slowest {
		if c.resume(at); c.slow.accepts == 0 { // nothing is known that could limit it
			c.state = StateClosed
		}
	}
	c.answered = false
	return true
}

// doubt is how many times longer than a rejection took a probe has to wait before it counts as
// accepted: a long poll has no other result for a long time.
const doubt = 2

// resume ends the silence: calls are sent as before it.
func (c *class) resume(at time.Duration) {
	c.state, c.credit, c.due = StateThrottling, c.burst(), 0
	c.changed, c.stale, c.short = at, true, at
}

// probes reports whether a probe is due at a time since a call was last sent.
func (c *class) probes(waited time.Duration) bool {
	intervals := waited.Seconds() / c.cfg.ProbeInterval.Seconds()
	least := 1.
	if c.state == StateThrottling {
		least = patient
	}
	return intervals >= least && (c.skipped*c.skipped >= sparse*intervals || waited >= c.cfg.Window)
}

const (
	// patient is after how many intervals without a call a client sends one whose accepts earn
	// none. A thousand clients of K = 1.1 then send 1.3 times the capacity, and 250 are back 3 s
	// after an overload; with 1 it is 1.8 times, with 4 it is 6 s.
	patient = 3
	// sparse keeps the probes of clients that make fewer than two calls per interval to fewer than
	// one per interval. Clients of half a call send one of eight, as there are many of them.
	sparse = 4
)

// roll brings all up to the time at, and returns the time that it is then: goroutines
// come out of order, and time does not go back.
func (c *class) roll(at time.Duration) time.Duration {
	at = max(at, c.now)
	passed := at - c.now
	c.now = at
	if served := c.served.Swap(0); served > 0 {
		c.active = at
		c.slow.requests += float64(served)
		c.slow.accepts += float64(served)
	}
	if quick := c.quick.Swap(0); quick > 0 {
		c.active = min(at, time.Duration(c.gate.Load()))
		c.short = c.active
		c.slow.requests += float64(quick)
		c.skipped += float64(quick)
		c.rejected += quick
	}
	if c.state != StateProbing && !c.stale { // else it stands still
		c.slow.pass(passed, c.cfg.Window)
	}
	if c.state == StateThrottling {
		c.credit = min(c.credit+float64(c.income()*passed.Seconds()), c.depth())
	}
	if at-c.active > c.cfg.Window {
		c.forget()
	}
	if c.advice.until > 0 && at >= c.advice.until {
		c.advice = advice{}
	}
	return at
}

func (c *class) forget() {
	c.state, c.slow, c.fast = StateClosed, memory{}, run{}
}

// income is the credit per second, besides that of accepts.
func (c *class) income() float64 {
	if c.stale {
		return c.cfg.K * c.slow.rate() // no accept is heard of yet
	}
	return (c.cfg.K - 1) * c.slow.rate()
}

// depth is the most credit: that of a quarter of an interval.
func (c *class) depth() float64 {
	return max(1, float64(c.cfg.MinRequests)) + c.burst()
}

func (c *class) burst() float64 {
	return float64(c.cfg.K * c.slow.rate() * c.cfg.quarter().Seconds())
}

// settle counts the result of a call that was sent at the given time: see refuse for the margin.
func (c *class) settle(at, sent time.Duration, accepted bool, margin float64) {
	if accepted && c.gate.Load() == open {
		c.served.Add(1)
		return
	}
	c.mu.Lock()
	defer c.unlock()
	at = c.roll(at)
	c.active = at
	c.answered = c.answered || sent == c.asked
	if !accepted {
		c.slowest = max(c.slowest, at-sent)
	}
	switch {
	case c.state != StateClosed && sent <= c.changed:
	case accepted:
		c.stale = false
		c.accept(at, sent)
	default:
		c.stale = false
		c.refuse(at, sent, margin)
	}
}

// leave takes in that a call has ended without a result that informs.
func (c *class) leave(sent time.Duration) {
	if !c.limits() {
		return
	}
	c.mu.Lock()
	defer c.unlock()
	c.answered = c.answered || sent == c.asked
}

// refuse takes in that the backend did not accept a call. The margin is how many times MinRequests
// the evidence has to be.
func (c *class) refuse(at, sent time.Duration, margin float64) {
	c.streak = streak{refused: at}
	if c.state == StateProbing {
		return
	}
	c.slow.requests++
	c.fast.refuse(at, sent)
	patience := c.cfg.quarter()
	if c.state == StateThrottling {
		patience = c.cfg.ProbeInterval
	}
	allowed := float64(margin * float64(c.cfg.MinRequests))
	if c.slow.accepts > 0 {
		allowed += float64(c.fast.sent * float64(patience) / float64(at-c.fast.since))
	}
	if c.fast.excess(c.cfg.K) >= allowed {
		c.trip(at)
	}
}

// trip starts to limit calls, or limits them further.
func (c *class) trip(at time.Duration) {
	c.state = StateProbing
	if c.fast.accepts > 0 {
		c.state = StateThrottling
		c.slow = memory{requests: c.fast.sent, accepts: c.fast.accepts, seconds: (at - c.fast.since).Seconds()}
	}
	c.fast = run{}
	c.credit, c.due = 0, 0
	c.changed, c.asked, c.short, c.stale = at, at, at, true
	c.skipped, c.answered = 0, true
}

// accept takes in that the backend accepted a call.
func (c *class) accept(at, sent time.Duration) {
	c.slowest = 0
	if c.state == StateProbing {
		c.resume(at)
	}
	c.slow.requests++
	c.slow.accepts++
	c.fast.accept(sent, c.cfg.K)
	if c.state == StateClosed {
		return
	}
	c.credit++
	if c.streak.accept(at, sent) && c.streak.proven(at, &c.cfg) {
		c.credit++
	}
	if c.fast.sent == 0 && at-c.short >= c.cfg.ProbeInterval {
		c.state = StateClosed
	}
}

// configure takes a new configuration. A changed window starts empty.
func (c *class) configure(cfg Config, criticality spillway.Criticality, limited *atomic.Int32) {
	c.mu.Lock()
	defer c.unlock()
	c.criticality, c.limited = criticality, limited
	if c.cfg.Window != cfg.Window {
		c.forget()
	}
	c.cfg = cfg
}
