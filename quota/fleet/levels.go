package fleet

import (
	"math"

	"github.com/seed90641741/spillway"
)

// Constants of the rule; the package comment says what they do.
const (
	headroom  = 1.1  // what a task needs of what it wants on average
	noise     = 1.5  // standard deviations of independent arrivals, on top
	floor     = 0.1  // of an equal share: what a task has at least
	setpoint  = 0.75 // of the bucket that all tasks share, under overload
	leastRate = 0.5  // of a customer's rate: bounds of what steering does
	mostRate  = 1.75
	// quietShare is the part of a rate up to which demand needs no level. Tasks leave out of their
	// reports what is up to this part of an equal share. Both together are at most the rate.
	quietShare = 0.5

	shortMemory = 2     // seconds over which demand is averaged, if calls are frequent
	longMemory  = 20    // the same, if they are rare: demand that has moved away is forgotten as soon
	leastWants  = 0.001 // cost per second: less counts as none. A single call leaves less after 80 s

	late = 3 // intervals without a word, after which a task is not up to date
)

// Levels say who gets how much. They are the same for all tasks.
type Levels struct {
	Version
	Tasks int // that the leader knows of

	config    uint64  // hash of the leader's limits
	weight    float64 // of all customers that share the capacity
	unlisted  float64 // the rate that an unlisted newcomer has in all tasks; zero for no limit
	customers map[string]Level
}

// Customer returns the level of a customer. It returns false if the leader knows of
// no demand.
func (l *Levels) Customer(name string) (Level, bool) {
	c, ok := l.customers[name]
	return c, ok
}

// intern returns a copy of a name, or the one that l has already.
func (l *Levels) intern(name []byte) string {
	if l != nil {
		if c, ok := l.customers[string(name)]; ok {
			return c.name
		}
	}
	return string(name)
}

// A Level says how much one customer gets. Costs are in the unit of the quota.
type Level struct {
	// Rate is what the customer may use per second in all tasks together.
	Rate float64
	// Debt is how much of the bucket that all tasks share is used, in cost. It holds at least
	// BurstSeconds times the Rate. Debt divided by Rate is the time to pay it.
	Debt float64
	// Marginal is the class that is not admitted in full, by
	// [spillway.Criticality.Index]; lower ones are rejected. It is -1 without one.
	Marginal int
	// Share is the most that each task gets for the marginal class, in cost per second.
	// If no class is marginal, each task gets as much on top of what it needs.
	Share float64

	name string
}

// ample returns what a task with a demand of w on average needs. Below one unit per second the
// bucket covers the noise, for it holds at least LeastDepth.
func ample(w float64) float64 { return float64(headroom*w) + float64(noise*min(w, math.Sqrt(w))) }

// depth returns how much the bucket that all tasks share holds: a burst, and at least what single
// calls in all tasks vary by. A bucket of less than that would lose what is saved up between calls.
func (s *settings) depth(rate float64, tasks int) float64 {
	return max(float64(s.window*rate), s.LeastDepth*math.Sqrt(float64(tasks)))
}

// steered returns the sum of all grants that brings the debt to its set point.
func (s *settings) steered(rate, debt float64, tasks int) float64 {
	toPay := (float64(setpoint*s.depth(rate, tasks)) - debt) / s.settle
	return min(max(rate+toPay, leastRate*rate), mostRate*rate)
}

// quiet returns the level of a customer with little demand. All tasks know it, so that levels need
// not have it: what is left of the rate, if demand takes up to half of it, is divided.
func (s *settings) quiet(rate float64, tasks int) Level {
	return Level{Rate: rate, Marginal: -1, Share: (s.steered(rate, 0, tasks) - quietShare*rate) / float64(tasks)}
}

// grant returns what one of so many tasks gets of a level, for its demand by class,
// and the lowest class that it admits. The caller bounds the rate.
func (l *Level) grant(wants *[spillway.Criticalities]float64, tasks int) (rate float64, least int) {
	for class := spillway.Criticalities - 1; class > l.Marginal; class-- {
		rate += ample(wants[class])
	}
	if l.Marginal < 0 {
		rate += l.Share
	} else {
		rate += min(ample(wants[l.Marginal]), l.Share)
	}
	// Not even CRITICAL_PLUS alone stops CRITICAL: a board that is wrong must not.
	least = min(max(l.Marginal, 0), spillway.Critical.Index())
	return max(rate, floor*l.Rate/float64(tasks)), least
}
