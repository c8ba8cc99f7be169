package admin

import (
	"slices"

	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/settings"
)

// topRows is the number of rows of each top list on the page.
const topRows = 10

// explain adds to each reason the recommended action, the settings with their values, and what
// was measured.
func (s *sampler) explain(st *State) {
	if len(st.Reasons) == 0 {
		return
	}
	var configured []settings.Setting
	if p := s.with.Program; p != nil {
		configured = p.Settings()
	}
	for i := range st.Reasons {
		r := &st.Reasons[i]
		last, known := s.with.Decisions.Last(r.Policy, r.Reason, r.Mode)
		if !known {
			last = decisions.Decision{Policy: r.Policy, Reason: r.Reason, Customer: "?", Library: s.with.Library} // there may be one
		}
		e := last.Entry()
		r.Do, r.Link = e.Do, e.Link()
		if s.with.Library { // whose values are in its code
			r.Settings = settings.Named(e.Settings)
		} else {
			r.Settings = settings.Of(e.Settings, r.names(), configured)
		}
		r.Measured = measured(r, st, &last)
	}
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
