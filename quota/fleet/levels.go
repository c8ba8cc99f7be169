package fleet

import (
	"math"

	"github.com/seed90641741/spillway"
)

// The constants of the rule. The package comment describes them.
const (
	headroom = 1.1  // factor: what a task needs, relative to its mean demand
	noise    = 1.5  // in addition: standard deviations of independent arrivals
	floor    = 0.1  // least share of a task, relative to an equal share
	setpoint = 0.75 // used part of the bucket that all tasks share, under overload
	// leastRate and mostRate limit R', the sum of all grants, relative to a customer's rate R.
	leastRate = 0.5
	mostRate  = 1.75
	// quietShare is the share of a rate up to which demand needs no level. Tasks do not report
	// demand up to this part of an equal share. Both together are at most the rate.
	quietShare = 0.5

	shortMemory = 2     // seconds over which frequent calls are averaged
	longMemory  = 20    // seconds over which rare calls are averaged
	leastWants  = 0.001 // cost per second that counts as 0; a call leaves it after 80 s

	late = 3 // intervals after which a silent task is not up to date
)

// Levels say how much each customer gets. They are the same for all tasks.
type Levels struct {
	Version
	Tasks int // number of tasks that the leader knows

	config uint64  // hash of the leader's limits
	weight float64 // sum over all customers that share the capacity
	// unlisted is the rate of a new unlisted customer in all tasks, in cost per second; 0: no
	// limit.
	unlisted  float64
	customers map[string]Level
}

// Customer returns the level of a customer, and false if the leader knows of no demand.
func (l *Levels) Customer(name string) (Level, bool) {
	c, ok := l.customers[name]
	return c, ok
}

// intern returns name as a string. It is the string that l has already, if it has one.
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
	// Rate is what the customer may use in all tasks together, in cost per second.
	Rate float64
	// Debt is the used part of the bucket that all tasks share, as a cost. The bucket holds at
	// least BurstSeconds times the Rate. Debt / Rate is the time in which the debt is paid, in
	// seconds.
	Debt float64
	// Marginal is the class that is admitted only in part, by [spillway.Criticality.Index]; lower
	// classes are rejected. It is -1 if all classes are admitted.
	Marginal int
	// Share is the most that each task gets for the marginal class, in cost per second. If no class
	// is marginal, it is what each task gets in addition to what it needs.
	Share float64

	name string
}

// ample returns what a task with a mean demand of w needs, in cost per second. Below one unit per
// second the bucket covers the noise, because it holds at least LeastDepth.
func ample(w float64) float64 { return float64(headroom*w) + float64(noise*min(w, math.Sqrt(w))) }

// depth returns the depth of the bucket that all tasks share, as a cost: one burst, and at least
// the variation of single calls in all tasks. A smaller bucket would lose what is saved up between
// calls.
func (s *settings) depth(rate float64, tasks int) float64 {
	return max(float64(s.window*rate), s.LeastDepth*math.Sqrt(float64(tasks)))
}

// steered returns the sum of all grants, in cost per second, that brings the debt to its set point.
func (s *settings) steered(rate, debt float64, tasks int) float64 {
	toPay := (float64(setpoint*s.depth(rate, tasks)) - debt) / s.settle
	return min(max(rate+toPay, leastRate*rate), mostRate*rate)
}

// quiet returns the level of a customer with little demand. All tasks can compute it, so levels
// need not have it. Each task gets an equal part of what is left of the rate if demand takes half
// of it.
func (s *settings) quiet(rate float64, tasks int) Level {
	return Level{Rate: rate, Marginal: -1, Share: (s.steered(rate, 0, tasks) - quietShare*rate) / float64(tasks)}
}

// grant returns the rate that a task gets by a level, for its demand by class, and the lowest class
// that it admits. The caller limits the rate.
func (l *Level) grant(wants *[spillway.Criticalities]float64, tasks int) (rate float64, least int) {
	for class := spillway.Criticalities - 1; class > l.Marginal; class-- {
		rate += ample(wants[class])
	}
	if l.Marginal < 0 {
		rate += l.Share
	} else {
		rate += min(ample(wants[l.Marginal]), l.Share)
	}
	// CRITICAL stays admitted even if CRITICAL_PLUS alone uses everything, because the board may be
	// wrong.
	least = min(max(l.Marginal, 0), spillway.Critical.Index())
	return max(rate, floor*l.Rate/float64(tasks)), least
}
