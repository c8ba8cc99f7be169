package exporters

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/customers"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/histogram"
	"github.com/seed90641741/spillway/internal/admin/quotastats"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// descriptions has the descriptions of the proxy's metrics, by name.
var descriptions = describe()

func describe() map[string]*prometheus.Desc {
	all := make(map[string]*prometheus.Desc)
	for _, m := range telemetry.Metrics {
		if m.Scope != telemetry.Library {
			all[m.Name] = prometheus.NewDesc(m.Name, m.Help, slices.Concat(m.Labels, m.OfProxy()), nil)
		}
	}
	return all
}

// A Collector makes metrics of the last State.
type Collector struct {
	State func() *admin.State
	Names bool // of customers, too
}

// Registry returns a registry with a Collector.
func Registry(state func() *admin.State, names bool) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(Collector{state, names})
	return r
}

// Handler returns a handler of the metrics.
func Handler(state func() *admin.State, names bool) http.Handler {
	return promhttp.HandlerFor(Registry(state, names), promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4})
}

// Describe implements [prometheus.Collector].
func (Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (x Collector) Collect(to chan<- prometheus.Metric) {
	st := x.State()
	m := metrics{to}
	m.level(telemetry.Ready, oneIf[st.Ready])
	m.notices(st)
	each(st.Quotas, m.quota)
	if st.Service != nil {
		m.service(st.Service)
	} else {
		m.proxy(st, x.Names)
	}
}

// proxy sends the metrics that the proxy alone has, with the names of customers or without.
func (m metrics) proxy(st *admin.State, names bool) {
	for cluster, events := range st.Details.Events {
		events.Each(func(mode spillway.Mode, k telemetry.Kind, c spillway.Criticality, n uint64) {
			m.count(telemetry.Decisions, n, k.Policy(), c.String(), k.Outcome(), k.Reason(), mode.String(), cluster)
		})
	}
	each(st.Details.Places, m.place)
	m.count(telemetry.Retries, st.Totals.Retries)
	m.classes(&st.Totals.Accounts)
	m.rejected(&st.Rejected, names)
	for role := range st.Totals.Latency {
		m.latency(&st.Totals.Latency[role], telemetry.Roles[role])
	}
	m.level(telemetry.Overrides, oneIf[st.Override != nil])
	each(st.Gates, m.gate)
	each(st.Clusters, m.cluster)
	m.listeners(st.Listeners)
	each(st.Mongo, m.mongo)
	each(st.Customers, m.unlisted)
	if names {
		m.listed(st.Customers)
	}
	for _, l := range st.Tuned {
		m.level(telemetry.TunedLimit, l.Value, l.Name)
	}
}

func each[T any](all []T, send func(*T)) {
	for i := range all {
		send(&all[i])
	}
}

// metrics sends metrics to a channel.
type metrics struct{ to chan<- prometheus.Metric }

func (m metrics) level(x telemetry.Metric, v float64, labels ...string) {
	m.to <- prometheus.MustNewConstMetric(descriptions[x.Name], prometheus.GaugeValue, v, labels...)
}

func (m metrics) count(x telemetry.Metric, n uint64, labels ...string) {
	m.to <- prometheus.MustNewConstMetric(descriptions[x.Name], prometheus.CounterValue, float64(n), labels...)
}

func (m metrics) mongo(x *admin.Count) {
	if x.Level {
		m.level(telemetry.Mongo, x.Value, x.Listener, x.Name)
		return
	}
	m.to <- prometheus.MustNewConstMetric(descriptions[telemetry.MongoTotal.Name], prometheus.CounterValue, x.Value, x.Listener, x.Name)
}

// place sends the requests of a place by outcome. Rejections have a reason.
func (m metrics) place(t *accounts.PlaceTotal) {
	for a, n := range t.Ended {
		if account := accounts.Account(a); account != accounts.Rejected {
			m.count(telemetry.Requests, n, account.String(), "", t.Listener, t.Cluster, t.Route)
		}
	}
	for reason, n := range t.Rejected {
		if n == 0 {
			continue // there are many reasons
		}
		m.count(telemetry.Requests, n, accounts.Rejected.String(), accounts.Reason(reason).String(), t.Listener, t.Cluster, t.Route)
	}
}

// notices sends the number of notices of each kind, and the lines that logs have lost.
func (m metrics) notices(st *admin.State) {
	n := map[string]int{telemetry.NoticeMongoDB: len(st.MongoAway)}
	for _, x := range st.Notices {
		n[x.Kind]++
	}
	for _, kind := range telemetry.Notices {
		m.level(telemetry.Notice, float64(n[kind]), kind)
	}
	for _, l := range st.Logs {
		m.count(telemetry.LogLost, l.Lost, l.Name)
	}
}

// listeners sends one series per name: an HTTP and a MongoDB listener may have the same.
func (m metrics) listeners(all []admin.Listener) {
	named := make(map[string]admin.Listener, len(all))
	for _, l := range all {
		if c := l.Clients; c != nil {
			m.level(telemetry.ClientRequests, float64(c.Requests-c.Waiting), l.Name, "working")
			m.level(telemetry.ClientRequests, float64(c.Waiting), l.Name, "waiting")
			m.count(telemetry.ClientsEvicted, c.Evicted, l.Name)
			m.count(telemetry.ClientsRejected, c.Rejected, l.Name)
		}
		x := named[l.Name]
		named[l.Name] = admin.Listener{Open: x.Open + l.Open, RejectedBy: x.RejectedBy.Plus(l.RejectedBy)}
	}
	for name, l := range named {
		m.level(telemetry.Connections, float64(l.Open), name)
		l.RejectedBy.Each(func(reason string, n uint64) { m.count(telemetry.ConnRejected, n, name, reason) })
	}
}

// waits sends how long requests waited, if any did.
func (m metrics) waits(w admin.Waits, labels ...string) {
	if w.Count > 0 {
		m.to <- prometheus.MustNewConstSummary(descriptions[telemetry.QueueWait.Name], w.Count, w.Total.Seconds(), nil, labels...)
	}
}

func (m metrics) latency(c *histogram.Counts, role string) {
	buckets := make(map[float64]uint64, telemetry.Buckets)
	for i, bound := range telemetry.Bounds {
		buckets[bound] = c.Below(telemetry.FirstOctave + i)
	}
	m.to <- prometheus.MustNewConstHistogram(descriptions[telemetry.Latency.Name], c.Total(), c.Sum().Seconds(), buckets, role)
}

func (m metrics) gate(g *admin.Gate) {
	if g.Limit > 0 {
		m.level(telemetry.Limit, g.Limit, g.Listener, g.Cluster)
	}
	m.count(telemetry.CriticalityMissing, g.Unlabelled, g.Listener, g.Cluster)
	m.level(telemetry.InFlight, float64(g.InFlight), g.Listener, g.Cluster)
	m.level(telemetry.InFlightMax, float64(g.Peak), g.Listener, g.Cluster)
	m.level(telemetry.QueueLength, float64(g.Waiting), g.Listener, g.Cluster)
	m.waits(g.Waits, g.Listener, g.Cluster)
	m.level(telemetry.Utilization, g.Busy, g.Listener, g.Cluster)
	if g.Baseline > 0 {
		m.level(telemetry.BaseLatency, g.Baseline.Seconds(), g.Listener, g.Cluster)
	}
}

func (m metrics) cluster(x *admin.Cluster) {
	m.level(telemetry.Throttle, slices.Max(x.Throttle[:]), x.Name)
	if b := x.Budget; b != nil && b.Capacity > 0 {
		m.level(telemetry.Budget, b.Left/b.Capacity, x.Name)
	}
	if q := x.Queue; q != nil { // it is before all listeners
		m.level(telemetry.Limit, float64(q.Places), "", x.Name)
		m.level(telemetry.QueueLength, float64(q.Waiting), "", x.Name)
		m.waits(q.Waits, "", x.Name)
	}
	down := len(x.Down())
	for _, c := range x.Costs {
		m.level(telemetry.Cost, c.Cost.Seconds(), "", c.Key, x.Name)
		m.level(telemetry.CostError, c.Error.Seconds(), "", c.Key, x.Name)
		m.level(telemetry.CostUsed, oneIf[c.Used], "", c.Key, x.Name)
	}
	m.level(telemetry.Endpoints, float64(len(x.Endpoints)-down), x.Name, "up")
	m.level(telemetry.Endpoints, float64(down), x.Name, "down")
}

func (m metrics) quota(q *quotastats.Stats) {
	m.count(telemetry.QuotaSyncs, q.Syncs, q.Name, "ok")
	m.count(telemetry.QuotaSyncs, q.Errors, q.Name, "error")
	m.count(telemetry.QuotaSyncs, q.Fenced, q.Name, "fenced")
	m.level(telemetry.QuotaLeader, oneIf[q.Leader], q.Name)
	m.level(telemetry.QuotaTasks, float64(q.Tasks), q.Name)
	m.level(telemetry.QuotaConflict, oneIf[q.Conflict], q.Name)
	m.level(telemetry.QuotaGrace, q.Grace.Seconds(), q.Name)
	if q.Age >= 0 {
		m.level(telemetry.QuotaAge, q.Age.Seconds(), q.Name)
	}
	for _, c := range q.Customers {
		m.level(telemetry.QuotaRate, c.Rate, q.Name, c.Customer)
		m.level(telemetry.QuotaDebt, c.Debt.Seconds(), q.Name, c.Customer)
		m.level(telemetry.QuotaMarginal, float64(c.Marginal), q.Name, c.Customer)
	}
}

// unlisted sends the line of all customers together that a quota does not list.
func (m metrics) unlisted(c *customers.Customer) {
	if c.Unlisted {
		m.level(telemetry.UnlistedLimit, c.Limit, c.Listener, c.Cluster)
		m.count(telemetry.UnlistedRequests, c.Admitted, "admitted", c.Listener, c.Cluster)
		m.count(telemetry.UnlistedRequests, c.Rejected, "rejected", c.Listener, c.Cluster)
	}
}

// classes sends the requests by account, of each class that has come.
func (m metrics) classes(t *accounts.Totals) {
	for class := range spillway.Criticalities {
		came := false
		for a := range t.Ended {
			came = came || t.Ended[a][class] > 0
		}
		for a := 0; came && a < len(t.Ended); a++ {
			m.count(telemetry.ClassRequests, t.Ended[a][class], accounts.Account(a).String(), (spillway.Criticality(class) + spillway.Sheddable).String())
		}
	}
}

// rejected sends the rejections of the customers with most of them. Without names they are in one sum.
func (m metrics) rejected(r *decisions.Rejected, names bool) {
	others := r.Others
	for row, n := range r.Rows {
		if names {
			m.count(telemetry.CustomerRejected, n, row.Name, row.Criticality, row.Reason)
		} else {
			others += n
		}
	}
	m.count(telemetry.CustomerRejected, others, "", "", "")
}

// listed sends what listed customers may use here, and what they use: of each quota, those with the fullest buckets.
func (m metrics) listed(all []customers.Customer) {
	type gate struct{ listener, cluster string }
	sent := make(map[gate]int)
	for i := range all {
		c := &all[i]
		at := gate{c.Listener, c.Cluster}
		if !c.Listed || c.Unlisted || sent[at] == telemetry.MostCustomers {
			continue
		}
		sent[at]++
		if c.Limit > 0 {
			m.level(telemetry.QuotaShare, c.Limit, c.Customer, c.Listener, c.Cluster)
		}
		m.level(telemetry.QuotaUse, c.UsedRate, c.Customer, c.Listener, c.Cluster)
	}
}

// oneIf is the value of a metric that says whether something is so.
var oneIf = map[bool]float64{true: 1}

// service sends the metrics of a service of quotas.
func (m metrics) service(q *quotastats.Service) {
	m.level(telemetry.QuotaEnvoys, float64(q.Envoys), q.Quota)
	m.level(telemetry.QuotaBuckets, float64(q.Listed), q.Quota, "listed")
	m.level(telemetry.QuotaBuckets, float64(q.Unlisted), q.Quota, "unlisted")
	m.count(telemetry.QuotaReports, q.Reports-q.Overflow, q.Quota, "ok")
	m.count(telemetry.QuotaReports, q.Overflow, q.Quota, "overflow")
	m.count(telemetry.QuotaReports, q.Invalid, q.Quota, "invalid")
	for class, c := range q.Calls {
		name := (spillway.Sheddable + spillway.Criticality(class)).String()
		m.count(telemetry.QuotaCalls, c.AdmittedTotal, q.Quota, name, "admitted")
		m.count(telemetry.QuotaCalls, c.RejectedTotal, q.Quota, name, "rejected")
	}
}
