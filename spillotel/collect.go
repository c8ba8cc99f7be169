package spillotel

import (
	"context"
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/seed90641741/spillway/internal/telemetry"
)

// collect reports all counters and levels. It implements [metric.Callback].
func (o *Observer) collect(_ context.Context, to metric.Observer) error {
	m := sink{o, to}
	o.recorder.Report(m.count)
	o.sources.Report(o.config.MaxBackends, m.level, m.count)
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
