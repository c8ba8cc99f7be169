package quota

import (
	"cmp"
	"time"

	"github.com/seed90641741/spillway"
)

// maxDebt is the highest debt of a bucket, and the longest duration of a lease.
const maxDebt = 365 * 24 * time.Hour

// maxDepth is the highest depth of a bucket for Grant.LeastDepth. It equals the largest
// Config.BurstSeconds.
const maxDepth = time.Hour

// bucket is a debt of time, and the mark that rejections leave in it. Each is stored as the time,
// by the clock of the Quota, at which it will be zero.
type bucket struct{ full, mark time.Duration }

// wait returns how long it takes until the debt is below the threshold. Zero and less mean that it
// is below now.
func (b *bucket) wait(at, threshold time.Duration) time.Duration {
	return max(b.full, b.mark) - at - threshold + 1
}

// markRejected leaves a mark at the threshold, which keeps lower classes rejected.
func (b *bucket) markRejected(at, threshold time.Duration) { b.mark = max(b.mark, at+threshold) }

// charge adds nanoseconds to the debt. A negative number reduces the debt, but not below zero.
func (b *bucket) charge(at time.Duration, nanoseconds float64) {
	debt := float64(max(0, b.full-at)) + nanoseconds
	b.full = at + time.Duration(min(max(debt, 0), float64(maxDebt)))
}

// scale multiplies the remaining debt and mark.
func (b *bucket) scale(at time.Duration, by float64) {
	b.full = at + time.Duration(min(float64(max(0, b.full-at))*by, float64(maxDebt)))
	b.mark = at + time.Duration(min(float64(max(0, b.mark-at))*by, float64(maxDebt)))
}

// threshold returns the debt from which a call of a class is rejected, in the bucket that limits
// the classes up to i. below is the result of belowHighest for the call.
func threshold(burst time.Duration, class, below, i int) time.Duration {
	return burst * time.Duration((class+1)*part-below) / time.Duration((i+1)*part)
}

// part is the number of parts into which the share of a class in a bucket is divided. The lower
// half of them is for all calls of the class.
const part = 2 * spillway.Levels

// tasksFor is how long low levels of a customer leave a part of its bucket free after a call of a
// task with progress, which shows that its tasks make several calls.
const tasksFor = 10 * time.Second

// belowHighest returns by how many parts the rank of a call is below the highest rank in its class.
// Calls of tasks with progress and calls without a level have the highest rank. If a customer has
// no calls of tasks with progress, such as at an edge, all its calls have the highest rank: no part
// of the bucket must stay free for later calls.
func (c *customer) belowHighest(at time.Duration, call *spillway.Call) int {
	if call.Progress > 0 || !call.Level.Valid() || at >= c.tasksUntil {
		return 0
	}
	return int(spillway.Levels - call.Level)
}

// customer is the state of a customer: its lease, its buckets, and counts since the last lease.
type customer struct {
	name       string
	generation uint32        // number of customers that had this index before
	known      bool          // the Allocator knows the customer
	unlisted   bool          // it shares the bucket of index 0
	all        bool          // it stands for all unlisted customers together
	tasksUntil time.Duration // until when low levels leave room for tasks with progress
	leased     time.Duration // begin of the lease
	until      time.Duration // end of the lease
	rate       float64       // cost per second
	deep       time.Duration // least depth of the buckets, as debt
	least      int           // index of the lowest class that is admitted
	wants      float64       // Demand.Wants of the last lease
	used       float64       // cost charged since the last lease
	admitted   uint64        // calls admitted since the last lease
	mean       float64       // mean cost of a call admitted before the last lease
	// offered is the cost since the last lease, rejected calls included.
	offered    [spillway.Criticalities]float64
	perToken   [spillway.Criticalities]float64    // debt for a cost of 1, in ns; 0: no limit
	buckets    [spillway.Criticalities]bucket     // bucket i limits the classes up to i
	calls      [spillway.Criticalities]ClassStats // for Stats
	part       bool                               // rate is this process's part of a rate
	limit      float64                            // limit over all processes, in cost per second
	setting    string                             // name of what makes rate less than limit
	recent     recent
	pace       pace
	rejections *[spillway.Criticalities]rejections // nil until a call is rejected
}

// admit charges the cost of an admitted call.
func (c *customer) admit(at time.Duration, class int, cost float64) {
	c.calls[class].AdmittedTotal++
	c.recent.at(at).AdmittedTotal++
	c.admitted++
	c.offered[class] += cost
	c.ask(at, cost)
	c.charge(at, class, cost)
}

// rejectedFor returns how long calls of a class are rejected from the time at, and 0 if they are
// admitted. below is the result of belowHighest for the call.
func (c *customer) rejectedFor(at, burst time.Duration, class, below int) (wait time.Duration) {
	depth := max(burst, c.deep)
	for i := class; i < len(c.buckets); i++ {
		limit := threshold(depth, class, below, i)
		w := c.buckets[i].wait(at, limit)
		if c.rate == 0 || class < c.least && i == len(c.buckets)-1 {
			w = max(w, c.until-at, 1)
		}
		if w > 0 {
			c.buckets[i].markRejected(at, limit)
			wait = max(wait, w)
		}
	}
	return wait
}

func (c *customer) charge(at time.Duration, class int, cost float64) {
	c.used += cost
	c.recent.at(at).cost += cost
	for i := class; i < len(c.buckets); i++ {
		c.buckets[i].charge(at, float64(cost*c.perToken[i]))
	}
}

// measure charges a measured cost, or gives it back if amount is negative.
func (c *customer) measure(at time.Duration, class int, amount float64) {
	c.offered[class] = max(0, c.offered[class]+amount)
	c.ask(at, amount)
	c.charge(at, class, amount)
}

// reject counts a rejected call and its demand. The cost of the call is unknown, so it counts with
// the mean cost of calls that were admitted before, and at least with cost, the charge at
// admission.
func (c *customer) reject(at time.Duration, class int, cost float64) {
	c.count(at, class)
	c.offered[class] += max(cost, c.mean)
	c.ask(at, max(cost, c.mean))
}

// count counts a rejected call.
func (c *customer) count(at time.Duration, class int) {
	c.calls[class].RejectedTotal++
	c.recent.at(at).RejectedTotal++
}

// demand returns the demand since the last lease, and resets its counters.
func (c *customer) demand(at time.Duration) Demand {
	d := Demand{Customer: c.name, Has: c.rate, Elapsed: at - c.leased}
	if d.Elapsed > 0 {
		d.Offered, d.Used = c.offered, c.used
		sum := 0.
		for _, cost := range c.offered {
			sum += cost
		}
		c.wants = sum / d.Elapsed.Seconds()
		if c.admitted > 0 {
			c.mean, c.admitted = c.used/float64(c.admitted), 0
		}
		c.offered, c.used = [spillway.Criticalities]float64{}, 0
	}
	d.Wants = c.wants
	return d
}

// lease begins a new lease. Debts keep their length in seconds, so a bucket stays as full as it is.
// The time since the end of the last lease counts at the new rate.
func (c *customer) lease(at, until, burst time.Duration, g Grant) {
	ended := min(at, c.until)
	c.leased, c.until, c.rate, c.least, c.unlisted = at, until, 0, g.LeastClass, g.Unlisted
	if g.Rate > 0 {
		c.rate = g.Rate
	}
	c.part, c.limit, c.setting = g.Part, cmp.Or(g.Limit, c.rate), g.Setting
	c.deepen(ended, burst, g.LeastDepth)
	g.Shares[len(g.Shares)-1] = 1
	for i, share := range g.Shares {
		c.perToken[i] = 0
		if c.rate > 0 && share > 0 {
			c.perToken[i] = float64(time.Second) / (c.rate * share)
		}
	}
}

// deepen sets the least depth of the buckets to the time that the cost least takes at the rate. It
// scales debts with the depth, so a bucket stays as full as it is.
func (c *customer) deepen(at, burst time.Duration, least float64) {
	before := max(burst, c.deep)
	c.deep = 0
	if c.rate > 0 && least > 0 {
		c.deep = time.Duration(min(least/c.rate*float64(time.Second), float64(maxDepth)))
	}
	if after := max(burst, c.deep); after != before {
		scale := float64(after) / float64(before)
		for i := range c.buckets {
			c.buckets[i].scale(at, scale)
		}
	}
}

// idle reports whether an unlisted customer c can be forgotten without effect.
func (c *customer) idle(at time.Duration) bool {
	if c.established() && at-c.leased < staysEstablished {
		return false
	}
	for _, b := range c.buckets {
		if max(b.full, b.mark) > at {
			return false
		}
	}
	return c.until <= at
}

// debt returns the share of c's bucket that is used. It can be above 1 after a charge.
func (c *customer) debt(at, burst time.Duration) float64 {
	b := c.buckets[spillway.Criticalities-1]
	return float64(max(0, b.full-at)) / float64(max(burst, c.deep))
}
