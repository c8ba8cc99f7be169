package admin

import (
	"slices"
	"strings"

	"github.com/seed90641741/spillway/internal/admin/decisions"
)

// topRows is the number of rows of each top list on the page.
const topRows = 10

// explain adds to each reason the recommended action, the settings with their values, and what
// was measured.
func (s *sampler) explain(st *State) {
	if len(st.Reasons) == 0 {
		return
	}
	var settings []Setting
	if p := s.with.Program; p != nil {
		settings = p.Settings()
	}
	for i := range st.Reasons {
		r := &st.Reasons[i]
		last, known := s.with.Decisions.Last(r.Policy, r.Reason, r.Mode)
		if !known {
			last = decisions.Decision{Policy: r.Policy, Reason: r.Reason, Customer: "?", Library: s.with.Library} // there may be one
		}
		e := last.Entry()
		r.Do, r.Link = e.Do, e.Link()
		r.Settings = fieldsOf(e.Settings, r.names(), settings)
		if s.with.Library { // whose values are in its code
			r.Settings = named(e.Settings)
		}
		r.Measured = measured(r, st, &last)
	}
}

// named returns fields without values.
func named(settings []string) (all []Field) {
	for _, name := range settings {
		all = append(all, Field{Name: name})
	}
	return all
}

// measured returns what was measured for a reason, nil if nothing was. Last is its latest rejection.
func measured(r *Reason, st *State, last *decisions.Decision) *Measured {
	f := &st.Mean
	switch {
	case r.Outcome == "rejected":
		if last.Measured != nil {
			return &Measured{last.Time, *last.Measured, last.Limit, last.Unit}
		}
	case r.Outcome == "late" && f.P99 != nil && f.Deadline != nil:
		return &Measured{st.Time, *f.P99, *f.Deadline, "ms (p99 and deadline)"}
	case r.Reason == "budget":
		if b := emptiest(st.Clusters); b != nil {
			return &Measured{st.Time, b.Left, b.Capacity, "tokens of the retry budget"}
		}
	}
	return nil
}

// emptiest returns the emptiest retry budget, nil if there is none.
func emptiest(clusters []Cluster) (least *Budget) {
	for _, x := range clusters {
		if b := x.Budget; b != nil && b.Capacity > 0 && (least == nil || b.Left/b.Capacity < least.Left/least.Capacity) {
			least = b
		}
	}
	return least
}

// names returns the places of a reason as the configuration names them, in order.
func (r *Reason) names() (all []string) {
	for _, place := range r.places {
		if place != "" {
			all = append(all, place)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// mostFields is how many fields a reason shows at most.
const mostFields = 4

// fieldsOf returns the fields that patterns such as clusters[].quota match at some places,
// with their values. Of a place it takes the fields that are set, or the first one.
func fieldsOf(patterns, places []string, settings []Setting) (all []Field) {
	for _, place := range places {
		var set, unset []Field
		for _, pattern := range patterns {
			for _, name := range namesOf(pattern, place, settings) {
				if values := valuesOf(name, settings); len(values) > 0 {
					set = append(set, values...)
				} else {
					unset = append(unset, Field{Name: name})
				}
			}
		}
		if len(set) == 0 {
			set = unset[:min(1, len(unset))]
		}
		all = append(all, set...)
	}
	if len(all) == 0 && len(patterns) > 0 {
		whole := find(settings, func(x Setting) bool { return x.Field == patterns[0] })
		all = []Field{{patterns[0], whole.Value}}
	}
	return all[:min(len(all), mostFields)]
}

// namesOf returns the fields that a pattern matches at a place: the field of the listener or
// cluster, or of each route to the cluster.
func namesOf(pattern, place string, settings []Setting) (all []string) {
	section, field, ok := strings.Cut(pattern, "[]")
	if !ok {
		return nil
	}
	key := "].name"
	if section == "routes" {
		key = "].cluster"
	}
	for _, x := range settings {
		if entry, ok := strings.CutSuffix(x.Field, key); ok && x.Value == place && strings.HasPrefix(entry, section+"[") {
			all = append(all, entry+"]"+field)
		}
	}
	return all
}

// valuesOf returns a field with its value, or the first ones of a section.
func valuesOf(name string, settings []Setting) (all []Field) {
	for _, x := range settings {
		rest, ok := strings.CutPrefix(x.Field, name)
		switch {
		case !ok:
		case rest == "" && x.Value != "given": // a section with values of its own
			return []Field{{x.Field, x.Value}}
		case len(all) < 2 && rest != "" && (rest[0] == '.' || rest[0] == '['):
			all = append(all, Field{x.Field, x.Value})
		}
	}
	return all
}
