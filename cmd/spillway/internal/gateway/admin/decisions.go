package admin

import (
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/decisions"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// topRows is the number of rows of each top list on the page.
const topRows = 10

// explain adds to each reason the recommended action, the settings with their values, and what
// was measured.
func (s *sampler) explain(st *State) {
	if len(st.Reasons) == 0 {
		return
	}
	settings, places := s.proxy.Settings(), placesOf(st)
	for i := range st.Reasons {
		r := &st.Reasons[i]
		last, known := s.decided.Last(r.Policy, r.Reason, r.Mode)
		if !known {
			last = decisions.Decision{Policy: r.Policy, Reason: r.Reason, Customer: someCustomer}
		}
		e := last.Entry()
		r.Do, r.Link = e.Do, e.Link()
		r.Settings = fieldsOf(e.Settings, places[r.key()], settings)
		r.Measured = measured(r, st, &last)
	}
}

// someCustomer is the customer of a reason without a sample: there may be one.
const someCustomer = "?"

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
		return emptiest(st.Clusters, st.Time)
	}
	return nil
}

// emptiest returns the tokens of the emptiest retry budget.
func emptiest(clusters []ClusterFigure, now time.Time) (m *Measured) {
	for i := range clusters {
		if b := clusters[i].Budget; b != nil && b.Capacity > 0 && (m == nil || b.Left/b.Capacity < m.Value/m.Limit) {
			m = &Measured{now, b.Left, b.Capacity, "tokens of the retry budget"}
		}
	}
	return m
}

// MongoSuffix follows the name of a MongoDB listener where a cluster has the same name.
const MongoSuffix = " (mongodb)"

// reasonKey identifies a reason.
type reasonKey struct{ policy, outcome, reason, mode string }

func (r *Reason) key() reasonKey { return reasonKey{r.Policy, r.Outcome, r.Reason, r.Mode} }

// placesOf returns the names of the clusters and listeners that had each reason since the start,
// in order.
func placesOf(st *State) map[reasonKey][]string {
	all := make(map[reasonKey][]string)
	add := func(key reasonKey, names ...string) {
		for _, name := range names {
			name = strings.TrimSuffix(name, MongoSuffix)
			if name != "" && !slices.Contains(all[key], name) {
				all[key] = append(all[key], name)
			}
		}
	}
	for cluster, events := range st.Totals.Details.Events {
		events.Each(func(mode spillway.Mode, k telemetry.Kind, _ spillway.Criticality, n uint64) {
			if n > 0 {
				add(reasonKey{k.Policy(), k.Outcome(), k.Reason(), mode.String()}, cluster)
			}
		})
	}
	enforce := spillway.ModeEnforce.String()
	for i := range st.Totals.Details.Places {
		p := &st.Totals.Details.Places[i]
		for _, a := range goneAccounts {
			if p.Ended[a] > 0 {
				add(reasonKey{ownPolicy, outcomeGone, a.String(), enforce}, p.Cluster, p.Listener)
			}
		}
		for reason := accounts.MaxRequests; int(reason) < accounts.Reasons; reason++ {
			if p.Rejected[reason] > 0 {
				add(reasonKey{ownPolicy, "rejected", reason.String(), enforce}, p.Cluster, p.Listener)
			}
		}
	}
	for key := range all {
		slices.Sort(all[key])
	}
	return all
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
		all = []Field{{Name: patterns[0]}}
		if i := slices.IndexFunc(settings, func(x Setting) bool { return x.Field == patterns[0] }); i >= 0 {
			all[0].Value = settings[i].Value
		}
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
	for i := range settings {
		x := &settings[i]
		entry, key := x.Field, ".name"
		if section == "routes" {
			key = ".cluster"
		}
		if x.Value != place || !strings.HasPrefix(entry, section+"[") || !strings.HasSuffix(entry, "]"+key) {
			continue
		}
		all = append(all, strings.TrimSuffix(entry, key)+field)
	}
	return all
}

// valuesOf returns a field with its value, or the first ones of a section.
func valuesOf(name string, settings []Setting) (all []Field) {
	for i := range settings {
		x := &settings[i]
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
