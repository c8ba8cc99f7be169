package spillotel

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

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

	o.mu.Lock()
	servers, clients, budgets := maps.Clone(o.servers), slices.Clone(o.clients), maps.Clone(o.budgets)
	o.mu.Unlock()
	now := time.Now()
	for name, s := range servers {
		m.server(now, name, s)
	}
	for _, b := range backends(clients, o.config.Backends) {
		m.level(&telemetry.InFlight, b.InFlight, "", b.Key)
		m.level(&telemetry.Limit, b.Limit, "", b.Key)
		m.level(&telemetry.Throttle, b.Throttle, b.Key)
	}
	for cluster, b := range budgets {
		if s := b.Stats(); s.Capacity > 0 {
			m.level(&telemetry.Budget, s.Tokens/s.Capacity, cluster)
		}
	}
	return nil
}

// backends returns the n backends that matter most.
func backends(clients []Client, n int) []telemetry.Backend {
	var all telemetry.Backends
	for _, c := range clients {
		for key, s := range c.Stats() {
			b := telemetry.Backend{Key: key, InFlight: float64(s.Inflight.InFlight), Limit: float64(s.Inflight.MaxRequests)}
			for class := range s.Throttle {
				b.Throttle = max(b.Throttle, s.Throttle[class].Probability)
			}
			all.Add(b)
		}
	}
	return all.Top(n)
}

// A sink is where metrics are sent to.
type sink struct {
	*Observer

	to metric.Observer
}

// server reports the levels of a server. Where there is no limit there is no metric of it.
func (m sink) server(now time.Time, name string, s Server) {
	st := s.Stats(now)
	tightest := st.Concurrency.Tightest()
	m.level(&telemetry.InFlight, float64(st.Shed.InFlight), name, "")
	m.level(&telemetry.QueueLength, float64(st.Shed.Waiting+st.InFlight.Waiting+st.RateLimit.Waiting), name, "")
	m.level(&telemetry.Utilization, st.Load.Utilization, name, "")
	m.level(&telemetry.Limit, tightest.Limit, name, "")
	if tightest.BaseLatency > 0 {
		m.level(&telemetry.BaseLatency, tightest.BaseLatency.Seconds(), name, "")
	}
}

func (m sink) level(x *telemetry.Metric, v float64, values ...string) {
	if !math.IsInf(v, 0) && !math.IsNaN(v) {
		m.to.ObserveFloat64(m.gauges[x], v, attributes(x, values))
	}
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
