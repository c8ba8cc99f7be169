package fleet

import (
	"maps"
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

// share returns the rate that this task may grant a customer, and the lowest class that it admits.
// Whatever the board returns, the rate is at most what the configuration allows, and not zero.
// wants is the demand in this task.
func (f *Fleet) share(now time.Time, e *entry, d quota.Demand, wants [spillway.Criticalities]float64) (rate float64, least int) {
	if math.IsInf(e.bounds.most, 1) {
		return e.bounds.most, 0
	}
	w := f.word
	if w == nil {
		return f.alone(now, e, d), 0
	}
	if e.word != w {
		e.word = w
		e.level, e.leveled = w.customers[e.name]
	}
	e.setting = f.setting(w, e)
	age := now.Sub(w.heard)
	rate, least = f.granted(w, e, age, &wants)
	if age > f.cfg.Hold {
		equal := f.alone(now, e, d) * float64(f.cfg.Tasks) / float64(max(w.Tasks, f.cfg.Tasks))
		rate, least = decayed(f.cfg, rate, equal, age), 0
	}
	// A wrong count of tasks must not take away the floor.
	tasks := min(max(w.Tasks, f.cfg.Tasks), 10*f.cfg.Tasks)
	return min(max(rate, floor*e.bounds.fair/float64(tasks)), e.bounds.most), least
}

// granted returns what the last levels grant, when they are age old.
func (f *Fleet) granted(w *word, e *entry, age time.Duration, wants *[spillway.Criticalities]float64) (rate float64, least int) {
	level := e.level
	if !e.leveled {
		if !f.isKnown(w, e) {
			return f.newcomer(w, e) / float64(w.Tasks), 0
		}
		level = f.cfg.quiet(e.bounds.most, w.Tasks)
	}
	if age <= late*f.cfg.Interval {
		return level.grant(wants, w.Tasks)
	}
	// The other tasks do not know of new demand here, and the leader cannot steer.
	rate, least = level.grant(&e.fresh, w.Tasks)
	if sum := f.cfg.steered(level.Rate, level.Debt, w.Tasks); sum > level.Rate {
		rate *= level.Rate / sum
	}
	return rate, least
}

// isKnown reports whether the leader has left a customer out of the levels although it knows the
// customer: reports with the customer have been on the board for some intervals.
func (f *Fleet) isKnown(w *word, e *entry) bool {
	return e.bounds.own && e.since > 0 && w.heard.Sub(e.told) > late*f.cfg.Interval
}

// newcomer returns the rate in all tasks together of a customer that the leader did not know, in
// cost per second.
func (f *Fleet) newcomer(w *word, e *entry) float64 {
	switch {
	case !e.listed && w.unlisted > 0:
		return min(e.bounds.most, w.unlisted)
	case e.listed && !math.IsInf(f.cfg.maximum, 1):
		limit, _ := f.cfg.limit(e.name)
		return min(e.bounds.most, f.cfg.maximum*limit.Weight/(w.weight+limit.Weight))
	}
	return e.bounds.most
}

// setting returns the name of the limit that makes the rate of a customer in all tasks less than
// its own limit.
func (f *Fleet) setting(w *word, e *entry) string {
	limit, listed := f.cfg.limit(e.name)
	rate := e.level.Rate
	if !e.leveled {
		rate = f.newcomer(w, e)
	}
	const dust = 1e-6 // levels have the precision of a float32
	switch {
	case rate >= limit.Rate*(1-dust) || math.IsInf(rate, 1) || f.cfg.Above != nil:
		return ""
	case !listed && f.cfg.Limits.UnlistedTotal.Rate > 0:
		return quota.UnlistedTotal
	}
	return quota.Capacity
}

// alone returns the rate that the configuration grants this task without a board, in cost per
// second.
func (f *Fleet) alone(now time.Time, e *entry, d quota.Demand) float64 {
	if f.local == nil {
		f.local = f.cfg.alone()
	}
	if d.Customer == allUnlisted {
		return f.local.LeaseUnlisted(now, d).Rate
	}
	g := f.local.Lease(now, d)
	e.setting = g.Setting
	return g.Rate
}

// alone returns an allocator with this task's part of all limits.
func (s *settings) alone() *quota.Local {
	tasks := float64(s.Tasks)
	c := quota.LocalConfig{
		Capacity:      s.Limits.Capacity / tasks,
		DefaultLimit:  s.Limits.DefaultLimit,
		UnlistedTotal: s.Limits.UnlistedTotal,
		Customers:     maps.Clone(s.Limits.Customers),
	}
	c.DefaultLimit.Rate /= tasks
	c.UnlistedTotal.Rate /= tasks
	for name, limit := range c.Customers {
		limit.Rate /= tasks
		c.Customers[name] = limit
	}
	// The limits were checked, and parts of valid limits are valid.
	l, _ := quota.NewLocal(c)
	return l
}
