package telemetry

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/spacesaving"
)

// Report reports all counters of r.
func (r *Recorder) Report(report func(x *Metric, n uint64, labels ...string)) {
	var totals Totals
	r.Read(&totals)
	totals.Each(func(mode spillway.Mode, k Kind, c spillway.Criticality, n uint64) {
		report(&Decisions, n, k.Policy(), c.String(), k.Outcome(), k.Reason(), mode.String())
	})
	report(&Retries, r.Retries.Load())
	r.hedges.report(report)
	countKeys(r.Routes, &RouteRejected, report)
	countKeys(r.Customers, &CustomerRejected, report)
}

// countKeys reports the keys of a table, and all others together.
func countKeys(t *spacesaving.Table, x *Metric, report func(x *Metric, n uint64, labels ...string)) {
	if t == nil {
		return
	}
	all, others := t.Read()
	for _, c := range all {
		report(x, c.Count, c.Key, ReasonLabel(spillway.Reason(c.Tag)))
	}
	report(x, others, "", "")
}
