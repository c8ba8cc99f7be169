package admin

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed90641741/spillway"
)

// Descriptions describes all metrics that there can be.
func Descriptions() (all []*prometheus.Desc) {
	to := make(chan *prometheus.Desc)
	go func() {
		defer close(to)
		exporter{}.Describe(to)
	}()
	for d := range to {
		all = append(all, d)
	}
	return all
}

// LabelValues returns the values that labels can have which are not names of the
// configuration, by label.
func LabelValues() map[string][]string {
	all := map[string][]string{
		"policy": policies[:], "state": {"up", "down"},
		"mode": {spillway.Enforce.String(), spillway.Observe.String()},
	}
	for c := spillway.Sheddable; c <= spillway.CriticalPlus; c++ {
		all["criticality"] = append(all["criticality"], c.String())
	}
	for _, k := range kinds {
		all["outcome"] = append(all["outcome"], k.outcome)
		all["reason"] = append(all["reason"], k.reason)
	}
	for _, label := range []string{"outcome", "reason"} {
		slices.Sort(all[label])
		all[label] = slices.Compact(all[label])
	}
	return all
}
