package fleet

import (
	"maps"
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

// share returns what this task may grant a customer, and the lowest class. Whatever
// the board says, it is at most what the configuration allows, and not zero. wants is the
// demand here.
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
	// A count of tasks that is out of all proportion does not take away the floor.
	tasks := min(max(w.Tasks, f.cfg.Tasks), 10*f.cfg.Tasks)
	return min(max(rate, floor*e.bounds.fair/float64(tasks)), e.bounds.most), least
}

// granted returns what the last word grants, that is so old.
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
	// The others do not hear either what is new here, nor can the leader steer.
	rate, least = level.grant(&e.fresh, w.Tasks)
	if sum := f.cfg.steered(level.Rate, level.Debt, w.Tasks); sum > level.Rate {
		rate *= level.Rate / sum
	}
	return rate, least
}

// isKnown reports whether the leader knew of a customer that the word leaves out: it has had
// reports with this customer for some intervals.
func (f *Fleet) isKnown(w *word, e *entry) bool {
	return e.bounds.own && e.since > 0 && w.heard.Sub(e.told) > late*f.cfg.Interval
}

// newcomer returns what all tasks together may grant a customer that the leader did
// not know.
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

// setting returns what makes the rate of a customer in all tasks less than its limit.
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

// alone returns what the configuration grants this task without a board.
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

// alone returns an allocator of this task's part of all limits.
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
	l, _ := quota.NewLocal(c) // the limits are valid, and so are parts of them
	return l
}
