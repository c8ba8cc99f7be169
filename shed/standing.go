package shed

import (
	"math"
	"time"

	"github.com/seed90641741/spillway/internal/pace"
)

// standing is the signal that an overload stands. Its value, lasts, is the time for which requests
// recently had to wait. Four times the time in which no request had to wait is subtracted: so a
// server that is free for a fifth of the time is not overloaded for long. There is one signal for
// the processors (busy.go) and one for the limit of each queue.
type standing struct{ seen, lasts time.Duration }

// remembered is the greatest value of a signal, and the time after which a signal that was not
// observed is zero.
const remembered = 10 * time.Second

// see observes, at a time, whether a request can start without a wait. If not, the time since the
// last observation, but at most the time most, is added to the signal. If so, four times that time
// is subtracted.
func (s *standing) see(at time.Duration, free bool, most time.Duration) {
	passed := at - s.seen
	s.seen = at
	switch {
	case passed >= remembered: // nobody knows whether a request would have had to wait
		s.lasts = 0
		return
	case free:
		passed *= -4
	}
	s.lasts = min(max(s.lasts+min(passed, most), 0), remembered)
}

// over reports whether the signal is zero.
func (s *standing) over(at time.Duration) bool { return s.lasts == 0 || at-s.seen >= remembered }

// overload decides whether the queue is short for a request that may wait for the time patience. It
// is short while an overload stands behind a limit whose own queue was found, that is, if requests
// had to wait for longer than patience. The limit admits more requests than are in service, and
// these wait, too: with a static limit, as many do.
func (q *queue) overload(p *pace.Pace, patience time.Duration) {
	q.short = 0
	if !p.Found || q.leaving || q.full.lasts <= patience {
		return
	}
	waiters := capacityAt(q.cascade.above(0)) - 1 // the queue M/M/1/K has one of K in service
	q.short = int(max(shallow, min(waiters, p.Throughput*patience.Seconds())))
	q.marginal = q.cascade.marginal()
}

// isShort reports whether the queue is short for a group. It is short for the marginal group, for
// the groups below, and for higher groups while they can replace a waiter of these.
func (q *queue) isShort(group int) bool {
	return q.short > 0 && (group <= q.marginal || q.n > 0 && q.lowest().order.group() <= q.marginal)
}

// yields reports whether a request of a group must leave a free slot of the limit to higher groups.
// A group below the marginal one must do so while the backend is busy with the requests at work, so
// such a group gets only slots that would be idle otherwise.
func (q *queue) yields(group int, p *pace.Pace) bool {
	return q.short > 0 && group < q.marginal && p.Saturated
}

// delays reports whether a request would wait behind the limit for longer than bears. If so, it
// stays in the queue, where it is the next to run.
func delays(p *pace.Pace, bears time.Duration) bool { return p.Saturated && p.Wait > bears }

// marginal returns the lowest group that has, together with all lower groups, more than a fifth of
// the last 50 to 100 admissions. The groups below it only get slots that no other group needs. So a
// new task begins only when no task that has begun needs the slot.
func (c *cascade) marginal() (group int) {
	all, lower, keep := 0.0, 0.0, 1.0
	for _, n := range c.admitted {
		all += n
	}
	if all > 2*memory {
		keep = 0.5
	}
	for i := range c.admitted {
		if lower <= cut*all {
			group = i
		}
		lower += c.admitted[i]
		c.admitted[i] *= keep
	}
	return group
}

// seeLimit observes at an arrival whether the limit is reached, so that one more request may not
// start, or would wait behind the limit. If a queue was found behind the limit, the signal rises to
// at most the patience of the request plus 300 ms, so that the end of an overload is noticed soon.
func (q *queue) seeLimit(at time.Duration, a *arrival) {
	q.limited = !a.pace.Free || a.pace.Saturated
	q.full.see(at, !q.limited, math.MaxInt64)
	if a.pace.Found {
		q.full.lasts = min(q.full.lasts, a.patience+3*burst)
	}
}

// seeLeaving finds out whether more clients leave while their requests wait than while they run.
// A short queue cannot show it: the same clients leave later, when their requests have taken slots
// for nothing. So while a fifth of the requests that run are abandoned, the queue is long for half
// a second in ten, and it stays long if clients leave there.
func (q *queue) seeLeaving(at time.Duration, p *pace.Pace) {
	lost := p.Found && p.Abandoned > cut
	if p.Abandoned <= noise {
		q.again = at
	} else if lost && at >= q.again {
		q.again = at + remembered
	}
	q.leaving = q.left > max(noise, p.Abandoned) || lost && at < q.again-remembered+remembered/20
}
