package telemetry

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/frequent"
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
	countKeys(r.routes, &RouteRejected, func(tag uint8) []string { return []string{ReasonLabel(spillway.Reason(tag))} }, report)
	countKeys(r.customers, &CustomerRejected, customerLabels, report)
}

// countKeys reports the most frequent keys of a table, and all others together; nil reports nothing.
func countKeys(t *frequent.Rows, x *Metric, labels func(tag uint8) []string, report func(x *Metric, n uint64, labels ...string)) {
	if t == nil {
		return
	}
	all, others := t.Read()
	for _, c := range all {
		report(x, c.Count, append([]string{c.Key}, labels(c.Tag)...)...)
	}
	report(x, others, make([]string, len(x.Labels))...)
}
