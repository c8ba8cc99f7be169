package load

import (
	"fmt"
	"math"
	"slices"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
)

// Thresholds are the values of a measure, in its unit, from which each criticality is rejected, by
// [spillway.Criticality.Index].
type Thresholds [spillway.Criticalities]float64

// defaultReference is the value for a zero [Config.Reference]: the default thresholds of package
// shed.
var defaultReference = Thresholds{0.80, 0.87, 0.95, 1.00}

func (t *Thresholds) check(path string) error {
	for i, v := range t {
		if !(v > 0 && v <= math.MaxFloat32) || i > 0 && v <= t[i-1] {
			return invalid.Field("load", path, *t, "four positive numbers that ascend")
		}
	}
	return nil
}

// share returns the utilization for a value. At each threshold it is that of reference, and between
// two thresholds it rises linearly.
func (t *Thresholds) share(value float64, reference *Thresholds) float64 {
	if math.IsNaN(value) || value <= 0 {
		return 0
	}
	from, to := 0.0, 0.0
	for i, v := range t {
		if value <= v || i == len(t)-1 {
			return to + (value-from)/(v-from)*(reference[i]-to)
		}
		from, to = v, reference[i]
	}
	return to
}

// checkCombination returns an error that names the field of c that is wrong.
func (c *Config) checkCombination() error {
	if c.Reference == (Thresholds{}) {
		c.Reference = defaultReference
	}
	if err := c.Reference.check("Reference"); err != nil {
		return err
	}
	for name, t := range c.Thresholds {
		if !slices.Contains(measureNames[:], name) && !slices.ContainsFunc(c.Signals, func(s Signal) bool { return s.Name == name }) {
			return invalid.Field("load", fmt.Sprintf("Thresholds[%q]", name), t,
				"left out: there is no such measure (the measures are %v and the names of Signals)", measureNames)
		}
		if err := t.check(fmt.Sprintf("Thresholds[%q]", name)); err != nil {
			return err
		}
		if most, allowed := Measure(slices.Index(measureNames[:], name)).most(); t[len(t)-1] > most {
			return invalid.Field("load", fmt.Sprintf("Thresholds[%q]", name), t, "of numbers of %s", allowed)
		}
	}
	return nil
}

// readings returns all known measures, the user's signals last. They are valid until the next
// sample. The caller holds m.mu.
func (m *Meter) readings() []Reading {
	all := m.known[:0]
	for i, v := range m.values {
		if !math.IsNaN(v) {
			all = append(all, m.reading(Measure(i).String(), v, m.targets[i]))
		}
	}
	for i, v := range m.signals {
		if !math.IsNaN(v) {
			all = append(all, m.reading(m.config.Signals[i].Name, v, 1))
		}
	}
	m.known = all
	return all
}

func (m *Meter) reading(name string, value, target float64) Reading {
	r := Reading{Name: name, Value: value, Target: target}
	if t, ok := m.config.Thresholds[name]; ok {
		r.Target = t[len(t)-1]
		r.Share = t.share(value, &m.config.Reference)
	} else if target > 0 {
		r.Share = max(0, value/target)
	}
	return r
}

// combine returns the utilization. The caller holds m.mu.
func (m *Meter) combine() (u float64) {
	all := m.readings()
	if m.config.Combine != nil {
		if u = m.config.Combine(all); u > 0 { // false for NaN
			return min(u, math.MaxFloat32)
		}
		return 0
	}
	for i := range all {
		u = max(u, all[i].Share)
	}
	return u
}
