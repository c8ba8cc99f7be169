package metrics

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillotel"
	"github.com/seed90641741/spillway/spillprom"
)

// A row is one of the table.
type row struct {
	prometheus, otel, kind, unit string
	labels                       []string
	meaning                      string
}

// table returns the rows of docs/metrics.md that the library reports.
func table(t *testing.T) (rows []row) {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 7 || !strings.HasPrefix(line, "| `spillway_") || cells[5] == "proxy" || cells[5] == "quota" {
			continue
		}
		code := func(i int) string { return strings.Trim(strings.TrimPrefix(cells[i], "| "), "`") }
		r := row{prometheus: code(0), otel: code(1), kind: cells[2], unit: code(3), meaning: strings.TrimSuffix(cells[6], " |")}
		if cells[4] != "" {
			r.labels = slices.DeleteFunc(strings.Split(cells[4], ", "), func(label string) bool { return strings.HasSuffix(label, " (proxy)") })
		}
		slices.Sort(r.labels)
		rows = append(rows, r)
	}
	if len(rows) < 10 {
		t.Fatalf("%d rows found", len(rows))
	}
	return rows
}

type (
	server struct{ stats ingress.Stats }
	client map[string]egress.Stats
	bucket budget.Stats
)

func (s server) Stats(time.Time) ingress.Stats               { return s.stats }
func (c client) Stats(now time.Time) map[string]egress.Stats { return c }
func (b bucket) Stats(now time.Time) budget.Stats            { return budget.Stats(b) }

// report sends decisions of a server and a client to an observer.
func report(o spillway.Observer) {
	now := time.Now()
	rejected := spillway.Rejection(&spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonQueueFull, Level: 12, Limit: 10})
	rejected.Time, rejected.Policy = now, "shed"
	rejected.Call = spillway.Call{Key: "GET /carts/{id}", Customer: "shop", Criticality: spillway.Sheddable}
	retried := spillway.Event{Time: now, Policy: "retry", Outcome: spillway.OutcomeServed, Latency: 3 * time.Millisecond}
	retried.Call.Attempt = 2
	served := spillway.Event{Time: now, Policy: "shed", Outcome: spillway.OutcomeServed, Latency: time.Second}
	won := spillway.Event{Time: now, Policy: "hedge", Outcome: spillway.OutcomeServed, Latency: time.Millisecond}
	unpaid := spillway.Event{Time: now, Policy: "hedge", Rejected: true}
	for _, e := range []spillway.Event{rejected, rejected, retried, served, served, served, won, unpaid} {
		o.Observe(e)
	}
}

type shared fleet.Stats

func (s shared) Stats(time.Time) fleet.Stats { return fleet.Stats(s) }

// sources returns a server, a client and a budget, with a level for each metric.
func sources() (server, client, bucket, shared) {
	s := egress.Stats{InFlight: inflight.Stats{InFlight: 3, MaxInFlight: 10}}
	s.Throttle[2].Probability = 0.25
	var of server
	of.stats.Shed.InFlight, of.stats.Shed.Waiting, of.stats.RateLimit.Waiting = 7, 4, 1
	of.stats.Concurrency.Shared = concurrency.KeyStats{Limit: 12, BaseLatency: 5 * time.Millisecond}
	of.stats.Load.Utilization = 0.5
	of.stats.Costs.Keys = []cost.KeyStats{{Key: "mail", Cost: 10 * time.Millisecond, StandardError: time.Millisecond, Used: true, Calls: 1}}
	of.stats.Quota = []quota.CustomerStats{
		{Unlisted: true, Rate: 50, Classes: [spillway.Criticalities]quota.ClassStats{{AdmittedTotal: 2, RejectedTotal: 3}, {AdmittedTotal: 4, RejectedTotal: 5}}},
		{Customer: "mail", Known: true, Rate: 30, UsedRate: 20}, {Customer: "made up", Rate: 5, UsedRate: 5, Debt: 1},
	}
	q := shared{SyncsTotal: 9, ErrorsTotal: 2, FencedTotal: 1, Leader: true, Tasks: 3, Age: 2 * time.Second, Grace: 8 * time.Second, ConfigConflict: true}
	return of, client{"db": s}, bucket{Tokens: 25, Capacity: 100}, q
}

// A reading is a metric as one of the two has it.
type reading struct {
	kind, unit, meaning string
	labels              []string
	sum                 float64 // of all series; of a histogram the count and the sum
}

// TestTable: both have all metrics of the table and no others, with the same kinds, units,
// labels, meanings and values.
func TestTable(t *testing.T) {
	gathered, exported := gather(t), export(t)
	for _, r := range table(t) {
		p, ok := gathered[r.prometheus]
		if !ok || p.kind != r.kind || p.meaning != r.meaning || !slices.Equal(p.labels, r.labels) {
			t.Errorf("Prometheus has %+v, the table %+v", p, r)
		}
		o, ok := exported[r.otel]
		if !ok || o.kind != r.kind || o.unit != r.unit || o.meaning != r.meaning || !has(o.labels, r.labels) {
			t.Errorf("OpenTelemetry has %+v, the table %+v", o, r)
		}
		if p.sum != o.sum || p.sum == 0 {
			t.Errorf("%s: Prometheus has %v, OpenTelemetry %v", r.prometheus, p.sum, o.sum)
		}
		delete(gathered, r.prometheus)
		delete(exported, r.otel)
	}
	if len(gathered)+len(exported) > 0 {
		t.Errorf("not in the table: %v %v", gathered, exported)
	}
}

// has reports whether the attributes are the labels of the table. An empty attribute is left out: the
// gates of a server have a listener, and the gates of a client a cluster.
func has(attributes, labels []string) bool {
	if slices.Contains(labels, "cluster") && slices.Contains(labels, "listener") {
		unset := func(label string) bool {
			return label == "cluster" && slices.Contains(attributes, "listener") || label == "listener" && slices.Contains(attributes, "cluster")
		}
		labels = slices.DeleteFunc(slices.Clone(labels), func(label string) bool { return unset(label) && !slices.Contains(attributes, label) })
	}
	return slices.Equal(attributes, labels)
}

// gather returns what the registry of Prometheus gathers.
func gather(t *testing.T) map[string]reading {
	t.Helper()
	x, err := spillprom.New(spillprom.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, c, b, q := sources()
	x.AddServer("main", s)
	x.AddClient(c)
	x.AddBudget("db", b)
	x.AddQuota("shop", q)
	report(x)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(x)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]reading)
	for _, f := range families {
		r := reading{kind: strings.ToLower(f.GetType().String()), meaning: f.GetHelp()}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				r.labels = append(r.labels, l.GetName())
			}
			r.sum += valueOf(m)
		}
		r.labels = unique(r.labels)
		all[f.GetName()] = r
	}
	return all
}

func valueOf(m *dto.Metric) float64 {
	h := m.GetHistogram()
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(h.GetSampleCount()) + h.GetSampleSum()
}

// export returns what the SDK of OpenTelemetry exports.
func export(t *testing.T) map[string]reading {
	t.Helper()
	reader := metric.NewManualReader()
	o, err := spillotel.New(spillotel.Config{Meter: metric.NewMeterProvider(metric.WithReader(reader)).Meter("test")})
	if err != nil {
		t.Fatal(err)
	}
	s, c, b, q := sources()
	o.AddServer("main", s)
	o.AddClient(c)
	o.AddBudget("db", b)
	o.AddQuota("shop", q)
	report(o)
	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]reading)
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			r := read(m)
			r.unit, r.meaning, r.labels = m.Unit, m.Description, unique(r.labels)
			all[m.Name] = r
		}
	}
	return all
}

// read returns the kind, the attributes and the values of a metric.
func read(m metricdata.Metrics) (r reading) {
	add := func(attributes attribute.Set, v float64) {
		for _, a := range attributes.ToSlice() {
			r.labels = append(r.labels, string(a.Key))
		}
		r.sum += v
	}
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		if d.IsMonotonic && d.Temporality == metricdata.CumulativeTemporality {
			r.kind = "counter"
		}
		for _, p := range d.DataPoints {
			add(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[float64]:
		r.kind = "gauge"
		for _, p := range d.DataPoints {
			add(p.Attributes, p.Value)
		}
	case metricdata.Histogram[float64]:
		r.kind = "histogram"
		for _, p := range d.DataPoints {
			add(p.Attributes, float64(p.Count)+p.Sum)
		}
	}
	return r
}

func unique(labels []string) []string {
	slices.Sort(labels)
	return slices.Compact(labels)
}
