package spillprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed90641741/spillway/internal/telemetry"
)

// descriptions describe the metrics of the library, by name.
var descriptions = describe()

func describe() map[string]*prometheus.Desc {
	all := make(map[string]*prometheus.Desc)
	for _, m := range telemetry.Metrics {
		if m.OfLibrary() {
			all[m.Name] = prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
		}
	}
	return all
}

// Describe implements [prometheus.Collector].
func (x *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		to <- d
	}
}

// Collect implements [prometheus.Collector]. It reads the levels of all servers and clients.
func (x *Collector) Collect(to chan<- prometheus.Metric) {
	m := sink{to}
	x.recorder.Report(m.count)
	for role := range x.latency {
		x.collectLatency(m, role)
	}
	x.sources.Report(x.config.MaxBackends, m.level, m.count)
}

func (x *Collector) collectLatency(m sink, role int) {
	cumulative, count, sum := x.latency[role].Read()
	if count == 0 {
		return
	}
	buckets := make(map[float64]uint64, len(cumulative))
	for i, n := range cumulative {
		buckets[telemetry.Bounds[i]] = n
	}
	h := prometheus.MustNewConstHistogram(descriptions[telemetry.Latency.Name], count, sum.Seconds(), buckets, telemetry.Roles[role])
	var exemplars []prometheus.Exemplar
	for i := range x.exemplars[role] {
		if e, ok := x.exemplars[role][i].get(); ok {
			exemplars = append(exemplars, e)
		}
	}
	if len(exemplars) > 0 {
		if with, err := prometheus.NewMetricWithExemplars(h, exemplars...); err == nil {
			h = with
		}
	}
	m.to <- h
}

// A sink is where metrics are sent to.
type sink struct{ to chan<- prometheus.Metric }

func (m sink) level(x *telemetry.Metric, v float64, labels ...string) {
	m.to <- prometheus.MustNewConstMetric(descriptions[x.Name], prometheus.GaugeValue, v, labels...)
}

func (m sink) count(x *telemetry.Metric, n uint64, labels ...string) {
	m.to <- prometheus.MustNewConstMetric(descriptions[x.Name], prometheus.CounterValue, float64(n), labels...)
}
