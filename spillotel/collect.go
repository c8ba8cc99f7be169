package spillotel

import (
	"context"
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/spacesaving"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// collect reports all counters and levels. It implements [metric.Callback].
func (o *Observer) collect(_ context.Context, to metric.Observer) error {
	m := sink{o, to}
	var totals telemetry.Totals
	o.recorder.Read(&totals)
	totals.Each(func(mode spillway.Mode, k telemetry.Kind, c spillway.Criticality, n uint64) {
		m.count(&telemetry.Decisions, n, k.Policy(), c.String(), k.Outcome(), k.Reason(), mode.String())
	})
	m.count(&telemetry.Retries, o.recorder.Retries.Load())
	m.table(&telemetry.RouteRejected, o.recorder.Routes)
	m.table(&telemetry.CustomerRejected, o.recorder.Customers)
	o.sources.Levels(o.config.Backends, m.level)
	return nil
}

// A sink is where metrics are sent to.
type sink struct {
	*Observer

	to metric.Observer
}

func (m sink) level(x *telemetry.Metric, v float64, values ...string) {
	m.to.ObserveFloat64(m.gauges[x], v, attributes(x, values))
}

func (m sink) count(x *telemetry.Metric, n uint64, values ...string) {
	m.to.ObserveInt64(m.counters[x], int64(min(n, math.MaxInt64)), attributes(x, values))
}

// attributes returns the labels of x with their values. Empty values are left out:
// to Prometheus, both is the same.
func attributes(x *telemetry.Metric, values []string) metric.MeasurementOption {
	var all []attribute.KeyValue
	for i, v := range values {
		if v != "" {
			all = append(all, attribute.String(x.Labels[i], v))
		}
	}
	return metric.WithAttributeSet(attribute.NewSet(all...))
}

// table reports the keys of a table, and all others together.
func (m sink) table(x *telemetry.Metric, t *spacesaving.Table) {
	if t == nil {
		return
	}
	all, others := t.Read()
	for _, c := range all {
		m.count(x, c.Count, c.Key, telemetry.ReasonLabel(spillway.Reason(c.Tag)))
	}
	m.count(x, others, "", "")
}
