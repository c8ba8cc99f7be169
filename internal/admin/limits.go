package admin

import "github.com/seed90641741/spillway/internal/admin/limits"

// limitsOf returns the limits that move by themselves. Names are unique.
func limitsOf(l *Levels) (all []limits.Limit) {
	several := make(map[string]int)
	for _, g := range l.Gates {
		several[g.serverOf()]++
	}
	for _, g := range l.Gates {
		if !g.Adaptive {
			continue
		}
		name := g.serverOf() + " in flight"
		if several[g.serverOf()] > 1 {
			name += " from " + g.Listener
		}
		all = append(all, limits.Limit{Name: name, Value: g.Limit, Least: g.Least, Most: g.Most})
	}
	for _, t := range l.Tuned {
		all = append(all, limits.Limit{Name: t.Name, Value: t.Value, Least: t.Least, Most: t.Most})
	}
	return all[:min(len(all), limits.Most)]
}

// limits returns the limits with their usual ranges: those before the figures of the mean, so that
// a change is compared with what was before it.
func (s *sampler) limits(l *Levels) []limits.Limit {
	all := limitsOf(l)
	for i := range all {
		var values []float64
		for _, row := range s.rows[:max(0, len(s.rows)-meanTicks)] {
			values = append(values, row.Limits[all[i].Name])
		}
		all[i].Compare(values)
	}
	return all
}
