package throttle

import (
	"time"

	"github.com/seed90641741/spillway"
)

// AdviceLifetime is how long the accept ratio that a server reported counts after its last answer.
// A client that makes one call a minute remembers the answer to its last two calls: enough to spare
// an overloaded server half of them. After a recovery, the first answer ends the advice. If no call
// gets through, a longer lifetime would go on to reject calls that the server could serve. In the
// simulated scenario rare-clients, a lifetime of 5 minutes raises the goodput in the overload by
// another 14 %. In the minutes after the overload it rejects 20 % of the calls instead of 3 %.
const AdviceLifetime = 2 * time.Minute

// advice is the accept ratio that servers reported recently, for one criticality.
type advice struct {
	ratio float64       // mean of the last answers, 0 to 1; the latest has half of the weight
	until time.Duration // when the advice is forgotten; 0: no advice
}

// Advise takes in the share of the calls of a criticality that the server reports to accept, from 0
// to 1. Call it for each answer before its Ticket is settled, with a ratio of 1 if the answer has
// none. Values out of range, and NaN, are ignored.
//
// The ratio only matters while the window holds fewer than [Config.MinRequests] calls. Equation
// 21-1 then decides, and assumes that this ratio of the missing calls is accepted. So a client that
// calls rarely, and has no statistics, starts from the server's. The ratios of the last answers are
// averaged, starting from 1, so that with K = 2 one answer of one overloaded task throttles
// nothing. The average is forgotten two minutes after the last answer ([AdviceLifetime]). Whatever
// a server reports, the probability stays below MinRequests/(MinRequests+1), and only calls to this
// backend are throttled. Advise allocates nothing.
//
// Only pass on what a server says that is trusted as internal.
func (t *Throttle) Advise(now time.Time, criticality spillway.Criticality, ratio float64) {
	t.classes[criticality.Index()].advise(t.clock.heard(now), ratio)
}

func (c *class) advise(at time.Duration, ratio float64) {
	if !(ratio >= 0 && ratio <= 1) || ratio == 1 && !c.advised.Load() { // also finds NaN
		return
	}
	c.mu.Lock()
	defer c.unlock()
	at = c.roll(at)
	defer c.decide()
	mean := (1 + ratio) / 2
	if c.advice.until > 0 {
		mean = (c.advice.ratio + ratio) / 2
	}
	if mean > forgotten {
		c.forgetAdvice()
		return
	}
	c.advice = advice{ratio: mean, until: at + AdviceLifetime}
	c.advised.Store(true)
	c.hurry()
}

// hurry has the next call begin a new period if advice decides on that call. Otherwise the period
// goes on: if each answer ended it, the call rate of a busy client would never be measured.
func (c *class) hurry() {
	if c.advises() {
		c.period = 0
		c.until.Store(0)
	}
}

// forgotten is the mean ratio above which advice is dropped: so close to 1, it rejects nothing with
// any K that is used.
const forgotten = 0.99

// expire forgets advice that is past its lifetime. The caller holds the lock.
func (c *class) expire(at time.Duration) {
	if c.advice.until > 0 && at >= c.advice.until {
		c.forgetAdvice()
		c.decide()
	}
}

func (c *class) forgetAdvice() {
	c.advice = advice{}
	c.advised.Store(false)
}

// known returns the input of equation 21-1: the calls of the window, filled up to MinRequests with
// calls that are accepted at the advised ratio.
func (c *class) known() (requests, accepts, k float64) {
	requests, accepts = c.window.sum.requests(), c.window.sum.accepts
	missing := float64(c.cfg.MinRequests) - requests
	return requests + missing, accepts + float64(missing*c.advice.ratio), c.cfg.K
}

// advises reports whether advice decides on calls. A call that it rejects is never sent as a probe:
// a client that calls once a minute would send all of its calls as probes.
func (c *class) advises() bool {
	return c.advice.until > 0 && c.window.sum.requests() < float64(c.cfg.MinRequests)
}
