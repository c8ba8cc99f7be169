package quota

import (
	"cmp"
	"time"

	"github.com/seed90641741/spillway"
)

// maxDebt bounds what a charge can do to a bucket, and how long a lease is.
const maxDebt = 365 * 24 * time.Hour

// maxDepth bounds the depth of a bucket that Grant.LeastDepth asks for. It is the
// largest Config.BurstSeconds.
const maxDepth = time.Hour

// bucket is a debt of time and the mark that rejections have left on it. Each is stored as the
// time, by the clock of the Quota, at which it has decayed to zero.
type bucket struct{ full, mark time.Duration }

// wait returns how long it takes until the debt is below the threshold; zero or
// less if it is.
func (b *bucket) wait(at, threshold time.Duration) time.Duration {
	return max(b.full, b.mark) - at - threshold + 1
}

// markRejected leaves a mark, which keeps lower classes rejected.
func (b *bucket) markRejected(at, threshold time.Duration) { b.mark = max(b.mark, at+threshold) }

// charge adds to the debt, or takes from it.
func (b *bucket) charge(at time.Duration, nanoseconds float64) {
	debt := float64(max(0, b.full-at)) + nanoseconds
	b.full = at + time.Duration(min(max(debt, 0), float64(maxDebt)))
}

// scale multiplies the remaining debt and mark.
func (b *bucket) scale(at time.Duration, by float64) {
	b.full = at + time.Duration(min(float64(max(0, b.full-at))*by, float64(maxDebt)))
	b.mark = at + time.Duration(min(float64(max(0, b.mark-at))*by, float64(maxDebt)))
}

// threshold is that of a class in the bucket that limits the classes up to i. below is how far a call is from the highest of its class.
func threshold(burst time.Duration, class, below, i int) time.Duration {
	return burst * time.Duration((class+1)*part-below) / time.Duration((i+1)*part)
}

// part is what the part of a class in a bucket is divided into. The lower half of it is for all calls of the class.
const part = 2 * spillway.Levels

// belowHighest returns how far a call is from the highest of its class, in parts: tasks that have made progress are the highest, and so is a
// call without a level.
func belowHighest(call *spillway.Call) int {
	if call.Progress > 0 || !call.Level.Valid() {
		return 0
	}
	return int(spillway.Levels - call.Level)
}

// customer is the state of a customer.
type customer struct {
	name       string
	generation uint32 // how many customers had this place before
	known      bool   // to the Allocator
	unlisted   bool   // it shares the bucket of the first place
	all        bool   // it is that of all unlisted customers together
	leased     time.Duration
	until      time.Duration // end of the lease
	rate       float64
	deep       time.Duration                      // the least depth of the buckets, in debt
	least      int                                // the lowest class that is admitted
	wants      float64                            // when last reported
	used       float64                            // cost charged since then
	admitted   uint64                             // calls since then
	mean       float64                            // cost of an admitted call in the lease before
	offered    [spillway.Criticalities]float64    // cost since then, rejected calls included
	perToken   [spillway.Criticalities]float64    // nanoseconds of debt; zero for no limit
	buckets    [spillway.Criticalities]bucket     // i limits the classes up to i
	calls      [spillway.Criticalities]ClassStats // for Stats
	part       bool                               // the rate is a part of that of the customer
	limit      float64                            // that of the customer, in all processes
	setting    string                             // what makes the rate less than the limit
	recent     recent
	pace       pace
	rejections *[spillway.Criticalities]rejections // nil as long as no call was rejected
}

// admit charges the cost of a call.
func (c *customer) admit(at time.Duration, class int, cost float64) {
	c.calls[class].AdmittedTotal++
	c.recent.at(at).AdmittedTotal++
	c.admitted++
	c.offered[class] += cost
	c.ask(at, cost)
	c.charge(at, class, cost)
}

// rejectedFor returns how long such calls of a class will be rejected; 0 if they are admitted.
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

// measure charges a measured cost, or gives it back.
func (c *customer) measure(at time.Duration, class int, amount float64) {
	c.offered[class] = max(0, c.offered[class]+amount)
	c.ask(at, amount)
	c.charge(at, class, amount)
}

// reject counts a rejected call and its demand. Its cost is not known, so it is that of the calls
// that were admitted before, and at least what is charged at admission.
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

// demand says what the customer would use, and resets the counters.
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

// lease takes a new grant. Debts stay what they are in seconds, so that a bucket
// stays as full as it is. What has passed since the end of the last lease counts at the
// new rate.
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

// deepen sets the least depth of the buckets to the time that a cost takes at the
// rate. Debts are scaled with the depth, so that a bucket stays as full as it is.
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

// idle reports whether c, an unlisted customer, can be forgotten without effect.
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

// debt returns how much of c's bucket is used, as a share.
func (c *customer) debt(at, burst time.Duration) float64 {
	b := c.buckets[spillway.Criticalities-1]
	return float64(max(0, b.full-at)) / float64(max(burst, c.deep))
}
