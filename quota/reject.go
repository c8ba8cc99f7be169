package quota

import (
	"cmp"
	"math/bits"
	"strconv"
	"time"

	"github.com/seed90641741/spillway"
)

// A pace measures the cost per second that a customer asks for, rejected calls included. It
// begins when the bucket is full. As long as it is not, what was asked for long ago counts less.
type pace struct {
	since time.Duration
	asked float64
}

// paceWindow is how far back a pace looks: once it is older, it keeps half of what it has.
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

// rate returns the pace at a time. Least is the shortest time that it is an average of: that in
// which the rate pays for what a full bucket allows.
func (p *pace) rate(at, least time.Duration) float64 {
	return p.asked / max(at-p.since, least).Seconds()
}

// rejections are the latest rejections of one class of a customer, each with another hint. They are
// replaced when what they say has changed.
type rejections struct {
	until        time.Duration
	turn         time.Duration // of the next call to be rejected
	level, limit float64
	setting      string
	all          []*spillway.RejectedError // at most mostErrors
	next         int                       // of them, to be replaced
}

// mostErrors is how many hints of a class are remembered. Each takes about 150 bytes. The hints of a
// burst rise from 1 ms to 1 s, the depth of a bucket by default, in 11 steps.
const mostErrors = 11

// refreshed is how long a rejection says the same.
const refreshed = time.Second

// rejection returns the rejection of a call that could be admitted after wait, with the pace of the
// customer and its rate, and the least hint that is not before its turn.
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

// wait returns how long a rejected call has to wait for its turn. Turns are as far apart as the rate
// admits calls of this cost, so that calls rejected together do not come back for one token. Not
// all come back: a turn is at most the depth of the bucket later than the next call could be admitted,
// as the bucket is full again after that time without calls.
func (r *rejections) wait(at, least, depth, apart time.Duration) time.Duration {
	turn := max(r.turn, at+least)
	r.turn = min(turn+apart, at+least+depth)
	return turn - at
}

// lasts returns how long a cost takes at the rate of the customer.
func (c *customer) lasts(cost float64) time.Duration {
	return time.Duration(min(max(cost, c.mean, 0)*c.perToken[len(c.perToken)-1], float64(maxDepth)))
}

// hintOf returns the least hint that is not below wait: 1 ms, 2 ms, 4 ms, up to more than maxDebt.
func hintOf(wait time.Duration) time.Duration {
	return time.Millisecond << min(bits.Len64(uint64((wait-1)/time.Millisecond)), mostHint)
}

const mostHint = 36

// The Setting of rejections by a limit that a customer shares with others.
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

// advice says what to do about a rejection of a class by a limit.
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

// threeDigits returns v with three significant digits, so that its text is short. It rounds up where
// it would round down: who asks for a little more than the limit does not seem to be below it.
func threeDigits(v float64) float64 {
	const dust = 1e-9
	if rounded := digits(v); rounded >= v*(1-dust) {
		return rounded
	}
	return digits(v * 1.005)
}

func digits(v float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // it is a number
	return rounded
}
