package shed

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

// overload finds out, for a request that may wait for so long, whether an overload stands behind a
// limit whose queue was found: for longer than that requests had to wait. The queue is short then. Places of the limit beyond what is in service are
// a queue as well, of which a static limit has as many.
func (q *queue) overload(p *spillway.Pace, patience time.Duration) {
	q.short = 0
	if !p.Found || q.leaving || q.full.lasts <= patience {
		return
	}
	waiters := capacityAt(q.cascade.all) - 1 // the queue M/M/1/K has one of K in service
	q.short = int(max(shallow, min(waiters, p.Throughput*patience.Seconds())))
	q.marginal = q.cascade.marginal()
}

// isShort reports whether the queue is short for a group: for those up to the marginal one, and for
// higher ones while they can replace one of these.
func (q *queue) isShort(group int) bool {
	return q.short > 0 && (group <= q.marginal || q.n > 0 && q.lowest().order.group() <= q.marginal)
}

// yields reports whether a group leaves a free place of the limit to higher ones, because others are
// in service already: it gets what these leave idle.
func (q *queue) yields(group int, p *spillway.Pace) bool {
	return q.short > 0 && group < q.marginal && p.Saturated
}

// delays reports whether a request would wait behind the limit for longer than it may. It gets the
// next place in service.
func delays(p *spillway.Pace, bears time.Duration) bool { return p.Saturated && p.Wait > bears }

// marginal returns the lowest group that has, with all lower ones, more than a fifth of the last 50 to
// 100 admissions. Those of lower ones fill gaps: so tasks begin when none that has begun needs the slot.
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

// seeLimit observes at an arrival whether the limit is reached: one more request may not start, or
// waits for others behind it. Where a queue was found, it is known when requests need not wait for one
// another, so that an overload that is over is soon forgotten.
func (q *queue) seeLimit(at time.Duration, a *arrival) {
	q.limited = !a.pace.Free || a.pace.Saturated
	q.full.see(at, !q.limited, math.MaxInt64)
	if a.pace.Found {
		q.full.lasts = min(q.full.lasts, a.patience+3*burst)
	}
}

// seeLeaving finds out whether clients leave while they wait, more of them than of those whose requests run. A short queue cannot show
// it: there the same clients leave later, and what their requests took is lost. So while a fifth of the requests that run behind a limit are
// abandoned, the queue is long for half a second in ten, and stays long if that is where clients leave.
func (q *queue) seeLeaving(at time.Duration, p *spillway.Pace) {
	lost := p.Found && p.Abandoned > cut
	if p.Abandoned <= noise {
		q.again = at
	} else if lost && at >= q.again {
		q.again = at + remembered
	}
	q.leaving = q.left > max(noise, p.Abandoned) || lost && at < q.again-remembered+remembered/20
}
