package fleet

import (
	"cmp"
	"math"
	"slices"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

// An account is the state of one customer over all tasks.
type account struct {
	name    string
	limit   quota.Limit
	listed  bool
	own     bool                            // its rate is its limit, whatever other customers do
	round   uint64                          // round of the last report that has the customer
	wants   float64                         // demand in cost per second, without silent tasks
	offered [spillway.Criticalities]float64 // wants by class
	// parts has, by class, what each task needs, in cost per second.
	parts    [spillway.Criticalities][]float64
	used     float64 // cost used since the last round
	reserved float64 // cost per second that is reserved for silent tasks
	rate     float64 // rate in all tasks together, in cost per second
	debt     float64 // debt of the bucket that all tasks share, as a cost
	level    Level   // level of the last round
}

// reset begins a round.
func (a *account) reset() {
	a.wants, a.used, a.reserved = 0, 0, 0
	a.offered = [spillway.Criticalities]float64{}
	for class := range a.parts {
		a.parts[class] = a.parts[class][:0]
	}
}

// useful returns the demand of the customer up to its limit, in cost per second.
func (a *account) useful() float64 { return min(a.wants+a.reserved, a.limit.Rate) }

// divide sets the rate of each account: its limit, or its part of the capacity. All unlisted
// customers are one claim among the listed ones, and share its rate. divide returns the weight of
// all claims, and the rate of a new unlisted customer in cost per second.
func (t *Table) divide() (weight, unlisted float64) {
	all := &account{limit: effective(t.cfg.Limits.UnlistedTotal)}
	if len(t.unlisted) == 0 {
		weight = fill(t.listed, t.cfg.maximum)
		all.rate = min(all.limit.Rate, t.cfg.maximum*all.limit.Weight/(weight+all.limit.Weight))
	} else {
		for _, a := range t.unlisted {
			all.wants += a.useful()
		}
		weight = fill(append(slices.Clone(t.listed), all), t.cfg.maximum)
		fill(t.unlisted, all.rate)
	}
	// Their part of the capacity is in the accounts of the customers.
	fill(t.total, math.Inf(1))
	if !math.IsInf(all.rate, 1) {
		unlisted = all.rate / float64(len(t.unlisted)+1)
	}
	return weight, unlisted
}

// fill sets the rates of claims that share a capacity, and returns their weight. If the demand is
// higher than the capacity, each claim gets at most an equal level per weight. Otherwise each gets
// its demand and its part of the rest, and at least its fair share.
func fill(claims []*account, capacity float64) (weight float64) {
	for _, a := range claims {
		weight += a.limit.Weight
		a.rate = a.limit.Rate
	}
	if math.IsInf(capacity, 1) {
		return weight
	}
	order := slices.SortedFunc(slices.Values(claims), byDemand)
	spare, left := capacity, weight
	for _, a := range order {
		left = max(left, a.limit.Weight) // only rounding can make it less
		if a.useful() > spare*a.limit.Weight/left {
			for _, a := range claims {
				a.rate = min(a.limit.Rate, spare/left*a.limit.Weight)
			}
			return weight
		}
		spare -= a.useful()
		left -= a.limit.Weight
	}
	for _, a := range claims {
		part := a.limit.Weight / weight
		a.rate = min(a.limit.Rate, max(capacity*part, a.useful()+float64(max(0, spare)*part)))
	}
	return weight
}

// settle adds to the debt what was used in the last dt seconds, and subtracts what the rate has
// paid.
func (a *account) settle(t *Table, dt float64) {
	if math.IsInf(a.rate, 1) {
		a.debt = 0
		return
	}
	if t.learning && t.expected > 0 {
		return // most of what was used since the last levels is not known yet
	}
	most := float64(2*t.cfg.window*a.rate) + float64(t.cfg.LeastDepth*float64(len(t.tasks)))
	a.debt = min(max(a.debt+a.used-float64(a.rate*dt), 0), most)
}

// isQuiet reports whether a customer needs no level: all tasks know its rate, and they use and need
// at most half of it.
func (a *account) isQuiet(s *settings, tasks int) bool {
	if !a.own || a.debt > quietShare*s.depth(a.rate, tasks) {
		return false
	}
	sum := a.reserved
	for _, parts := range a.parts {
		for _, part := range parts {
			sum += part
		}
	}
	return sum <= quietShare*a.rate
}

// share divides the rate of a customer by class, from the highest class down.
func (a *account) share(s *settings, tasks int) Level {
	l := Level{Rate: a.rate, Debt: a.debt, Marginal: -1, name: a.name}
	left := max(0, s.steered(a.rate, a.debt, tasks)-a.reserved)
	for class := spillway.Criticalities - 1; class >= 0; class-- {
		sum := 0.
		for _, part := range a.parts[class] {
			sum += part
		}
		if sum > left {
			l.Marginal, l.Share = class, waterLevel(a.parts[class], left)
			return l
		}
		left -= sum
	}
	l.Share = left / float64(tasks)
	return l
}

// waterLevel returns the level L at which Σ min(part, L) = total. The total must be less than the
// sum of the parts. It sorts the parts.
func waterLevel(parts []float64, total float64) float64 {
	slices.Sort(parts)
	for i, part := range parts {
		if level := total / float64(len(parts)-i); level <= part {
			return level
		}
		total -= part
	}
	return 0
}

// byDemand orders accounts by demand per weight.
func byDemand(a, b *account) int {
	return cmp.Compare(a.useful()/a.limit.Weight, b.useful()/b.limit.Weight)
}
