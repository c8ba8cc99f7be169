package throttle

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

// pending has the calls that were sent while there is a limit, and have no result yet. They count
// as accepted once they have waited for longer than rejections take. They wait in two cohorts: new
// calls join the young one while the old one waits. So a call waits for that time at least, and for
// twice that time at most.
type pending struct {
	begin      time.Duration // calls sent until then, before the limit was set, are not in it
	counted    time.Duration // calls sent until then have counted as accepted, or have ended
	old, young cohort
}

// A cohort is a number of calls that were sent in succession.
type cohort struct {
	first, last time.Duration // when the first and the last were sent
	calls       float64       // the number of them that have not ended
}

// send adds a call that was sent at a time.
func (p *pending) send(at time.Duration) {
	switch {
	case at <= p.counted: // later calls have already counted
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

// turn makes the young cohort the old one if that has no calls left.
func (p *pending) turn() {
	if p.old.calls == 0 && p.young.calls > 0 {
		p.old, p.young = p.young, cohort{}
	}
}

// end removes a call that has ended, and reports whether it has already counted as accepted.
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

// ripe removes and returns the calls that count as accepted from now on: the old cohort, if all of
// it was sent until the given time. Otherwise the result has no calls.
func (p *pending) ripe(until time.Duration) (c cohort) {
	if p.turn(); p.old.calls == 0 || p.old.last > until {
		return c
	}
	c = p.old
	p.counted, p.old = c.last, cohort{last: c.last}
	p.turn()
	return c
}

// doubt is how many times longer than the longest recent rejection a call waits until it counts as
// accepted.
const doubt = 2

// ripen counts those calls as accepted that have waited for long enough. The caller holds the lock.
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

// leave removes a call that has ended without an outcome that informs.
func (c *class) leave(sent time.Duration) {
	if c.probability() == noLimit {
		return
	}
	c.mu.Lock()
	defer c.unlock()
	c.limiter.pending.end(sent)
	c.together.abandoned = true
}

// confirm notes that a call which already counted as accepted has ended as accepted.
func (l *limiter) confirm(at time.Duration) {
	l.hear(at)
	l.proven = true
}

// recant takes back an accept: the call had counted as accepted after a wait, and was rejected
// later. If no call has ended as accepted since the limit fell, the backend accepts nothing, and
// the limiter is silent.
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

// forever is the time that a rejection is said to take after a timeout. So no call counts as
// accepted after a wait.
const forever = math.MaxInt64 / doubt

// waited returns how long a rejection took, or 0 if that is not known.
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
