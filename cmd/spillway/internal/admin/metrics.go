package admin

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The metrics. Labels are policies, classes, and names of the configuration: nothing
// that clients choose.
var (
	gateLabels = []string{"listener", "cluster"}

	requestsDesc = describe("overload_requests_total", "One for each attempt or request and policy that was asked; of the policy retry, "+
		"for each request that was sent. In the mode observe, refused means that it would have been.", "policy", "criticality", "outcome", "reason", "mode")
	retriesDesc  = describe("overload_retries_total", "Attempts that were not the first of their request.")
	latencyDesc  = describe("overload_latency_seconds", "From the first attempt to the head of the answer, of requests that were answered or late.")
	missingDesc  = describe("overload_criticality_missing_total", "Requests that came without a criticality.")
	overrideDesc = describe("overload_overrides", "Settings that were changed over the API and differ from the configuration.")
	readyDesc    = describe("overload_ready", "1 if clients can be served, 0 if not.")

	limitDesc    = describe("overload_limit", "Requests that may be in flight, as the shedder has found or a batch cluster has places.", gateLabels...)
	flightDesc   = describe("overload_in_flight", "Requests that were let in and have not ended.", gateLabels...)
	peakDesc     = describe("overload_in_flight_max", "The most requests under way at once in the last minute, those that wait included.", gateLabels...)
	queueDesc    = describe("overload_queue_length", "Requests that wait to be let in, or for their turn.", gateLabels...)
	waitDesc     = describe("overload_queue_wait_seconds", "How long requests waited for a token or for their turn.", gateLabels...)
	baselineDesc = describe("overload_baseline_seconds", "The least latency of the last seconds, by which the limit is found.", gateLabels...)

	throttleDesc  = describe("overload_throttle_probability", "With which a request of the most throttled class is not sent.", "cluster")
	budgetDesc    = describe("overload_retry_budget_ratio", "How full the retry budget is.", "cluster")
	endpointsDesc = describe("overload_endpoints", "Endpoints, by whether they get requests.", "cluster", "state")

	openDesc    = describe("overload_connections", "Connections that are open.", "listener")
	holdingDesc = describe("overload_client_requests", "Requests of a listener, in any state: working, or waiting for the client.", "listener", "state")
	evictedDesc = describe("overload_clients_evicted_total",
		"Requests and connections that waited for their client and were ended to make room for others.", "listener")
	cappedDesc = describe("overload_client_requests_rejected_total",
		"Requests that were rejected as max_requests of the listener was reached and none could be evicted.", "listener")
	refusedDesc = describe("overload_connections_refused_total", "Connections that were reset, for their rate or because too many were open.", "listener")
	mongoDesc   = describe("overload_mongodb", "Of a listener for clients of MongoDB: the counts of its ingress limiters, "+
		"by their names in the serverStatus of a MongoDB server, and those of the proxy.", "listener", "name")
	tunedDesc = describe("overload_tuned_limit", "A limit that is moved as signals tell.", "name")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Metrics returns the metrics of the last State, as /metrics has them.
func (s *Server) Metrics() prometheus.Gatherer { return s.registry }

// metrics returns a handler that shows the last State to Prometheus.
func (s *Server) metrics() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4})
}

// An exporter makes metrics of the last State.
type exporter struct{ sampler *sampler }

// Describe implements [prometheus.Collector].
func (exporter) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		requestsDesc, retriesDesc, latencyDesc, missingDesc, overrideDesc, readyDesc, limitDesc, flightDesc, peakDesc, queueDesc,
		waitDesc, baselineDesc, throttleDesc, budgetDesc, endpointsDesc, openDesc, refusedDesc, holdingDesc, evictedDesc, cappedDesc, mongoDesc, tunedDesc,
	} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (x exporter) Collect(to chan<- prometheus.Metric) {
	st := x.sampler.state.Load()
	m := metrics{to}
	for _, e := range st.Totals.Events {
		m.count(requestsDesc, e.Count, e.policy, e.Criticality.String(), e.outcome, e.reason, e.Mode)
	}
	m.count(retriesDesc, st.Totals.Retries)
	m.latency(&st.Totals.Latency)
	m.level(overrideDesc, b2f(st.Override != nil))
	m.level(readyDesc, b2f(st.Ready))
	missing := uint64(0)
	for i := range st.Gates {
		m.gate(&st.Gates[i])
		missing += st.Gates[i].Unlabelled
	}
	m.count(missingDesc, missing)
	for i := range st.Clusters {
		m.cluster(&st.Clusters[i])
	}
	m.listeners(st.Listeners)
	for _, x := range st.Mongo {
		m.level(mongoDesc, x.Value, x.Listener, x.Name)
	}
	for _, l := range st.Tuned {
		m.level(tunedDesc, l.Value, l.Name)
	}
}

// metrics is where metrics are sent to.
type metrics struct{ to chan<- prometheus.Metric }

func (m metrics) level(d *prometheus.Desc, v float64, labels ...string) {
	m.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (m metrics) count(d *prometheus.Desc, n uint64, labels ...string) {
	m.to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// listeners sends what there is of each name: one for MongoDB may have that of another.
func (m metrics) listeners(all []Listener) {
	named := make(map[string]Listener, len(all))
	for _, l := range all {
		if c := l.Clients; c != nil {
			m.level(holdingDesc, float64(c.Requests-c.Waiting), l.Name, "working")
			m.level(holdingDesc, float64(c.Waiting), l.Name, "waiting")
			m.count(evictedDesc, c.Evicted, l.Name)
			m.count(cappedDesc, c.Rejected, l.Name)
		}
		x := named[l.Name]
		named[l.Name] = Listener{Open: x.Open + l.Open, Refused: x.Refused + l.Refused}
	}
	for name, l := range named {
		m.level(openDesc, float64(l.Open), name)
		m.count(refusedDesc, l.Refused, name)
	}
}

// waits sends how long was waited, if anybody ever did.
func (m metrics) waits(w Waits, labels ...string) {
	if w.Count > 0 {
		m.to <- prometheus.MustNewConstSummary(waitDesc, w.Count, w.Total.Seconds(), nil, labels...)
	}
}

// The octaves that bound the buckets of the latency, in nanoseconds: 1 ms to 17 s.
const firstOctave, lastOctave = 20, 34

func (m metrics) latency(c *counts) {
	buckets := make(map[float64]uint64, lastOctave-firstOctave+1)
	for octave := firstOctave; octave <= lastOctave; octave++ {
		buckets[float64(uint64(1)<<octave)/1e9] = c.below(octave)
	}
	m.to <- prometheus.MustNewConstHistogram(latencyDesc, c.total(), c.sum().Seconds(), buckets)
}

func (m metrics) gate(g *Gate) {
	if g.Limit > 0 {
		m.level(limitDesc, g.Limit, g.Listener, g.Cluster)
	}
	m.level(flightDesc, float64(g.InFlight), g.Listener, g.Cluster)
	m.level(peakDesc, float64(g.Peak), g.Listener, g.Cluster)
	m.level(queueDesc, float64(g.Waiting), g.Listener, g.Cluster)
	m.waits(g.Waits, g.Listener, g.Cluster)
	if g.Baseline > 0 {
		m.level(baselineDesc, g.Baseline.Seconds(), g.Listener, g.Cluster)
	}
}

func (m metrics) cluster(x *ClusterFigure) {
	most := 0.0
	for _, p := range x.Throttle {
		most = max(most, p)
	}
	m.level(throttleDesc, most, x.Name)
	if b := x.Budget; b != nil && b.Capacity > 0 {
		m.level(budgetDesc, b.Left/b.Capacity, x.Name)
	}
	if q := x.Queue; q != nil { // it is before all listeners
		m.level(limitDesc, float64(q.Places), "", x.Name)
		m.level(queueDesc, float64(q.Waiting), "", x.Name)
		m.waits(q.Waits, "", x.Name)
	}
	down := 0
	for _, e := range x.Endpoints {
		if e.Down != "" {
			down++
		}
	}
	m.level(endpointsDesc, float64(len(x.Endpoints)-down), x.Name, "up")
	m.level(endpointsDesc, float64(down), x.Name, "down")
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
