package throttle

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

// pending is the calls that were sent while there is a limit, and have no result. They count as
// accepted after more time than rejections take, in two cohorts: calls are added to one while the
// other waits. So a call waits for that time at least, and for two times that at most.
type pending struct {
	begin      time.Duration // calls that were sent before are not counted
	counted    time.Duration // those sent until then have counted
	old, young cohort
}

// A cohort is calls that were sent one after another.
type cohort struct {
	first, last time.Duration // when the first and the last were sent
	calls       float64       // that have not ended
}

// send takes in a call.
func (p *pending) send(at time.Duration) {
	switch {
	case at <= p.counted: // a goroutine that comes late
	case at <= p.old.last:
		p.old.calls++
	case p.young.calls == 0:
		p.young = cohort{at, at, 1}
	default:
		p.young.last = max(p.young.last, at)
		p.young.calls++
	}
	p.turn()
}

// turn lets the young cohort wait if no call of the old one does.
func (p *pending) turn() {
	if p.old.calls == 0 && p.young.calls > 0 {
		p.old, p.young = p.young, cohort{}
	}
}

// end takes in that a call has ended, and reports whether it has counted as accepted.
func (p *pending) end(sent time.Duration) (counted bool) {
	switch {
	case sent <= p.begin:
		return false
	case sent <= p.counted:
		return true
	case sent <= p.old.last:
		p.old.calls = max(0, p.old.calls-1)
	default:
		p.young.calls = max(0, p.young.calls-1)
	}
	return false
}

// ripe returns the calls that count from now on: all of the old cohort, if they were sent until
// the given time.
func (p *pending) ripe(until time.Duration) (c cohort) {
	if p.turn(); p.old.calls == 0 || p.old.last > until {
		return c
	}
	c = p.old
	p.counted, p.old = c.last, cohort{last: c.last}
	p.turn()
	return c
}

// doubt is the factor between the longest wait for a rejection and that for an accept.
const doubt = 2

// ripen counts calls as accepted that have waited for long enough. The lock is held.
func (c *class) ripen(at time.Duration) {
	l := &c.limiter
	of := l.pending.ripe(at - max(c.cfg.ProbeInterval, doubt*c.window.sum.longest))
	if of.calls == 0 {
		return
	}
	sent, proven := of.first, l.proven
	for ; of.calls > 0 && l.phase != open; of.calls-- {
		if l.accept(&c.cfg, at, sent) {
			c.released++
		}
		if of.first > l.rejectedAt {
			sent = of.last
		}
	}
	l.proven = proven && l.phase != open
	c.decide()
}

// leave takes in that a call has ended without a result that informs.
func (c *class) leave(sent time.Duration) {
	if c.probability() == noLimit {
		return
	}
	c.mu.Lock()
	defer c.unlock()
	c.limiter.pending.end(sent)
	c.together.abandoned = true
}

// confirm takes in that a call has ended as accepted which counted as that before.
func (l *limiter) confirm(at time.Duration) {
	l.hear(at)
	l.proven = true
}

// recant takes back that a call counted as accepted, which was then rejected. If none was accepted
// in earnest, the others were not, either.
func (l *limiter) recant() {
	if !l.proven {
		l.phase = silent
	}
	l.streak.spare = 0
	if l.debt.accepts > 0 {
		l.debt.sent--
		l.debt.accepts--
	}
}

// forever is the time that a rejection takes at a backend that does not answer.
const forever = math.MaxInt64 / doubt

// waited returns the time that a rejection took, or 0 where that is not known.
func waited(at, sent time.Duration, o spillway.Outcome) time.Duration {
	switch {
	case o == spillway.OutcomeTimedOut:
		return forever
	case sent < 0: // as with noEpoch
		return 0
	default:
		return at - sent
	}
}
