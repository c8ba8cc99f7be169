package quota

import (
	"cmp"
	"math/bits"
	"strconv"
	"time"

	"github.com/seed90641741/spillway"
)

// A pace measures the cost per second that a customer asks for, rejected calls included. It starts
// again whenever the bucket is full. Until then older costs count less than new ones.
type pace struct {
	// since is when the measurement began, and asked is the cost since then.
	since time.Duration
	asked float64
}

// paceWindow is the age from which a pace halves what it has measured.
const paceWindow = 10 * time.Second

// ask adds a cost to the pace. It must be called before the cost is charged.
func (c *customer) ask(at time.Duration, cost float64) {
	p := &c.pace
	switch age := at - p.since; {
	case c.buckets[len(c.buckets)-1].full <= at:
		p.since, p.asked = at, 0
	case age > paceWindow:
		p.since, p.asked = at-age/2, p.asked/2
	}
	p.asked = max(0, p.asked+cost)
}

// rate returns the pace in cost per second. It is the mean over at least the time least, in which
// the customer's rate pays for the calls that a full bucket admits at once.
func (p *pace) rate(at, least time.Duration) float64 {
	return p.asked / max(at-p.since, least).Seconds()
}

// rejections has the latest rejections of one class of a customer, each with another retry delay.
// They are made again when their text is out of date.
type rejections struct {
	until time.Duration // when the text is out of date
	turn  time.Duration // turn of the next rejected call
	// level is the pace and limit the rate in the text, both in cost per second.
	level, limit float64
	setting      string
	all          []*spillway.RejectedError // at most mostErrors
	next         int                       // index in all of the one to be replaced next
}

// mostErrors is how many rejections of a class are kept, of about 150 bytes each. In a burst, their
// retry delays rise from 1 ms to 1 s, the default depth of a bucket, in 11 steps.
const mostErrors = 11

// refreshed is how long the text of a rejection stays the same.
const refreshed = time.Second

// rejection returns the rejection of a call that could be admitted after wait. It has the pace and
// the rate of the customer, and the smallest retry delay that is not before the call's turn.
func (c *customer) rejection(at, burst time.Duration, class int, wait time.Duration, cost float64) error {
	if c.rejections == nil {
		c.rejections = new([spillway.Criticalities]rejections)
	}
	r, depth := &c.rejections[class], max(burst, c.deep)
	level := c.pace.rate(at, threshold(depth, class, 0, spillway.Criticalities-1))
	if at >= r.until || c.rate != r.limit || c.setting != r.setting || level > 2*r.level || level < r.level/2 {
		*r = rejections{until: at + refreshed, turn: r.turn, level: level, limit: c.rate, setting: c.setting}
	}
	hint := hintOf(r.wait(at, wait, depth, c.lasts(cost)))
	for _, e := range r.all {
		if e.RetryAfter == hint {
			return e
		}
	}
	e := c.newRejection(class, r, hint)
	if len(r.all) < mostErrors {
		r.all = append(r.all, e)
	} else {
		r.all[r.next] = e
		r.next = (r.next + 1) % mostErrors
	}
	return e
}

// wait returns how long a rejected call has to wait for its turn. The distance between turns is the
// time after which the rate admits another call of this cost, so calls that were rejected together
// do not come back for one token. Not all calls come back. So a turn is at most the depth of the
// bucket later than the next admission: after that time without calls the bucket is full again.
func (r *rejections) wait(at, least, depth, apart time.Duration) time.Duration {
	turn := max(r.turn, at+least)
	r.turn = min(turn+apart, at+least+depth)
	return turn - at
}

// lasts returns how long a cost takes at the rate of the customer.
func (c *customer) lasts(cost float64) time.Duration {
	return time.Duration(min(max(cost, c.mean, 0)*c.perToken[len(c.perToken)-1], float64(maxDepth)))
}

// hintOf returns the smallest retry delay that is not below wait. Delays are powers of two: 1 ms, 2
// ms, 4 ms, up to more than maxDebt.
func hintOf(wait time.Duration) time.Duration {
	return time.Millisecond << min(bits.Len64(uint64((wait-1)/time.Millisecond)), mostHint)
}

const mostHint = 36

// These are values of Setting for a limit that a customer shares with others.
const (
	UnlistedTotal = "unlisted_total" // LocalConfig.UnlistedTotal
	Capacity      = "capacity"       // LocalConfig.Capacity
)

func (c *customer) newRejection(class int, r *rejections, hint time.Duration) *spillway.RejectedError {
	criticality := spillway.Criticality(class) + spillway.Sheddable
	e := &spillway.RejectedError{
		Policy:      "quota",
		Reason:      spillway.ReasonQuota,
		Criticality: criticality,
		Level:       threeDigits(r.level),
		Limit:       r.limit,
		Unit:        "per second",
		Setting:     c.setting,
		RetryAfter:  hint,
	}
	switch {
	case c.all:
		e.Setting = cmp.Or(c.setting, UnlistedTotal)
		e.Unit += " by all unlisted customers together"
	case c.setting != "":
		e.Unit += " as its part of " + c.setting
	case c.name == "":
		e.Unit += " by all calls without a customer of their own"
	}
	if c.part {
		e.Unit += " in this task"
	}
	if e.Advice = advice(e.Setting, criticality.String()); e.Setting == "" && c.name == "" {
		e.Advice = "calls without a customer, and those of customers beyond MaxUnlisted, have used up the default limit, which they share, for " +
			criticality.String() + " calls; name the customer of each call, or raise it (DefaultLimit)"
	}
	return e
}

// advice returns what to do about a rejection of a class by a limit.
func advice(setting, class string) string {
	switch setting {
	case UnlistedTotal:
		return "the customers that are not listed by name have used up unlisted_total together for " + class +
			" calls; list the customers that matter, or raise it (UnlistedTotal)"
	case Capacity:
		return "all customers together have used up the capacity of the quota for " + class + " calls; send fewer of them, or raise it"
	}
	return "the customer has used up its quota for " + class + " calls; send fewer of them, or raise the quota"
}

// threeDigits returns v with three significant digits, so that its text is short. It does not round
// down, because a customer that asks for a little more than its limit would seem to be below it.
func threeDigits(v float64) float64 {
	const dust = 1e-9
	if rounded := digits(v); rounded >= v*(1-dust) {
		return rounded
	}
	return digits(v * 1.005)
}

func digits(v float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // the text is a number
	return rounded
}
