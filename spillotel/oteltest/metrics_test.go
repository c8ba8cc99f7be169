package oteltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	"github.com/seed90641741/spillway/internal/telemetry"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillotel"
)

// scope is the name of the meter.
const scope = "github.com/seed90641741/spillway/spillotel"

// observer returns an Observer and what reads its metrics.
func observer(t testing.TB, c spillotel.Config) (*spillotel.Observer, *metric.ManualReader) {
	t.Helper()
	r := metric.NewManualReader()
	c.Meter = metric.NewMeterProvider(metric.WithReader(r)).Meter(scope)
	o, err := spillotel.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return o, r
}

// read returns the metrics by name.
func read(t testing.TB, r *metric.ManualReader) map[string]metricdata.Metrics {
	t.Helper()
	var got metricdata.ResourceMetrics
	if err := r.Collect(context.Background(), &got); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]metricdata.Metrics)
	for _, s := range got.ScopeMetrics {
		if s.Scope.Name != scope {
			t.Errorf("scope %q", s.Scope.Name)
		}
		for _, m := range s.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

// points returns the values of a metric by attributes, with the keys of all attributes.
func points(m metricdata.Metrics) (values map[string]float64, keys []string) {
	values = make(map[string]float64)
	add := func(set attribute.Set, v float64) {
		var all []string
		for _, a := range set.ToSlice() {
			all = append(all, string(a.Key)+"="+a.Value.String())
			keys = append(keys, string(a.Key))
		}
		values[strings.Join(all, " ")] = v
	}
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			add(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			add(p.Attributes, p.Value)
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			add(p.Attributes, float64(p.Count))
		}
	}
	slices.Sort(keys)
	return values, slices.Compact(keys)
}

// typeOf returns the type of a metric as the table has it.
func typeOf(m metricdata.Metrics) telemetry.Type {
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		if d.IsMonotonic && d.Temporality == metricdata.CumulativeTemporality {
			return telemetry.Counter
		}
	case metricdata.Gauge[float64]:
		return telemetry.Gauge
	case metricdata.Histogram[float64]:
		return telemetry.Histogram
	}
	return ""
}

// levels are what a server, a client and a budget have.
type levels struct {
	server ingress.Stats
	client map[string]egress.Stats
	tokens budget.Stats
}

func (l *levels) Stats(now time.Time) map[string]egress.Stats { return l.client }

type server struct{ *levels }

func (s server) Stats(time.Time) ingress.Stats { return s.server }

type bucket struct{ *levels }

func (b bucket) Stats(now time.Time) budget.Stats { return b.tokens }

func someLevels() *levels {
	s := egress.Stats{InFlight: inflight.Stats{InFlight: 3, MaxInFlight: 10}}
	s.Throttle[2].Probability = 0.25
	l := &levels{client: map[string]egress.Stats{"db": s}, tokens: budget.Stats{Tokens: 25, Capacity: 100}}
	l.server.Shed.InFlight, l.server.Shed.Waiting, l.server.RateLimit.Waiting = 7, 4, 1
	l.server.Concurrency.Shared = concurrency.KeyStats{Limit: 12, BaseLatency: 5 * time.Millisecond}
	l.server.Load.Utilization = 0.5
	l.server.Costs.Keys = []cost.KeyStats{{Key: "mail", Cost: 10 * time.Millisecond, StandardError: time.Millisecond, Used: true, Calls: 1}}
	l.server.Quota = []quota.CustomerStats{
		{Unlisted: true, Rate: 50, Classes: [spillway.Criticalities]quota.ClassStats{{AdmittedTotal: 2, RejectedTotal: 3}, {AdmittedTotal: 4, RejectedTotal: 5}}},
		{Customer: "mail", Known: true, Rate: 30, UsedRate: 20}, {Customer: "made up", Rate: 5, UsedRate: 5, Debt: 1},
	}
	return l
}

func rejection(at time.Time) spillway.Event {
	e := spillway.Rejection(&spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonQueueFull, Level: 12, Limit: 10})
	e.Time, e.Policy = at, "shed"
	e.Call = spillway.Call{Key: "GET /carts/{id}", Customer: "shop", Criticality: spillway.Sheddable}
	return e
}

func call(at time.Time) spillway.Event {
	e := spillway.Event{Time: at, Policy: "retry", Outcome: spillway.OutcomeServed, Latency: 3 * time.Millisecond}
	e.Call.Attempt = 2
	return e
}

type shared fleet.Stats

func (s shared) Stats(time.Time) fleet.Stats { return fleet.Stats(s) }

// TestTable: the metrics match the table: its names, types, units and attributes.
func TestTable(t *testing.T) {
	o, r := observer(t, spillotel.Config{})
	l := someLevels()
	o.AddServer("main", server{l})
	o.AddClient(l)
	o.AddBudget("db", bucket{l})
	o.AddQuota("shop", shared{SyncsTotal: 1, Age: time.Second})
	now := time.Now()
	o.Observe(rejection(now))
	o.Observe(call(now))
	o.Observe(spillway.Event{Time: now, Policy: "hedge", Rejected: true})
	o.Observe(spillway.Event{Time: now, Policy: "shed", Outcome: spillway.OutcomeTimedOut, Latency: time.Second})
	all := read(t, r)
	for _, x := range telemetry.Metrics {
		if !x.OfLibrary() {
			continue
		}
		m, ok := all[x.OTel()]
		if !ok || m.Unit != x.Unit || m.Description != x.Help || typeOf(m) != x.Type {
			t.Errorf("%s: %+v", x.OTel(), m)
		}
		_, keys := points(m)
		want := slices.Sorted(slices.Values(x.Labels))
		if slices.Contains(want, "listener") && !slices.Contains(keys, "cluster") { // of a server: empty attributes are left out
			want = slices.DeleteFunc(want, func(label string) bool { return label == "cluster" })
		}
		if !slices.Equal(keys, want) {
			t.Errorf("%s has the attributes %v, want %v", x.OTel(), keys, want)
		}
		delete(all, x.OTel())
	}
	if len(all) > 0 {
		t.Errorf("not in the table: %v", all)
	}
}

func TestValues(t *testing.T) {
	o, r := observer(t, spillotel.Config{})
	l := someLevels()
	o.AddServer("main", server{l})
	o.AddClient(l)
	o.AddClient(l) // a second client of the same backend
	o.AddBudget("db", bucket{l})
	o.AddBudget("none", bucket{&levels{}})
	now := time.Now()
	observed := rejection(now)
	observed.Mode = spillway.ModeObserve
	for _, e := range []spillway.Event{rejection(now), rejection(now), observed, call(now)} {
		o.Observe(e)
	}
	all := read(t, r)
	for name, want := range map[string]map[string]float64{
		"spillway.retries":           {"": 2},
		"spillway.latency":           {"role=client": 1},
		"spillway.route_rejected":    {"reason=queue_full route=GET /carts/{id}": 2, "": 0},
		"spillway.customer_rejected": {"criticality=SHEDDABLE customer=shop reason=queue_full": 2, "": 0},
		"spillway.quota_share":       {"customer=mail listener=main": 30},
		"spillway.quota_use":         {"customer=mail listener=main": 20},
		"spillway.in_flight":         {"listener=main": 7, "cluster=db": 6},
		"spillway.limit":             {"listener=main": 12, "cluster=db": 20},
		"spillway.queue_length":      {"listener=main": 5},
		"spillway.base_latency":      {"listener=main": 0.005},
		"spillway.utilization":       {"listener=main": 0.5},
		"spillway.throttle":          {"cluster=db": 0.25},
		"spillway.retry_budget":      {"cluster=db": 0.25},
	} {
		if got, _ := points(all[name]); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	decisions, _ := points(all["spillway.decisions"])
	for attributes, want := range map[string]float64{
		"criticality=SHEDDABLE mode=enforce outcome=rejected policy=shed reason=queue_full": 2,
		"criticality=SHEDDABLE mode=observe outcome=rejected policy=shed reason=queue_full": 1,
		"criticality=CRITICAL mode=enforce outcome=admitted policy=retry":                   1,
	} {
		if decisions[attributes] != want {
			t.Errorf("%s is %v, want %v", attributes, decisions[attributes], want)
		}
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if got, _ := points(read(t, r)["spillway.decisions"]); len(got) > 0 {
		t.Errorf("after Close: %v", got)
	}
}

// TestSeries: as many routes and customers as requests add only so many points.
func TestSeries(t *testing.T) {
	o, r := observer(t, spillotel.Config{})
	for i := range 100_000 {
		e := rejection(time.Unix(int64(i), 0))
		e.Call.Key, e.Call.Customer = fmt.Sprint("/carts/", i), fmt.Sprint("customer", i)
		o.Observe(e)
	}
	n, sum := 0, 0.0
	all := read(t, r)
	for _, m := range all {
		values, _ := points(m)
		n += len(values)
	}
	routes, _ := points(all["spillway.route_rejected"])
	for _, v := range routes {
		sum += v
	}
	if n > 100 || sum != 100_000 {
		t.Errorf("%d points, %v rejections by route", n, sum)
	}
}

func TestConfig(t *testing.T) {
	if _, err := spillotel.New(spillotel.Config{MaxCustomers: 65}); err == nil || err.Error() != "spillotel: MaxCustomers is 65, must be at most 64, or negative for none" {
		t.Error(err)
	}
	o, err := spillotel.New(spillotel.Config{}) // with the global MeterProvider
	if err != nil {
		t.Fatal(err)
	}
	o.Observe(rejection(time.Now()))
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// TestConcurrent has events counted while metrics are read, and none lost.
func TestConcurrent(t *testing.T) {
	o, r := observer(t, spillotel.Config{})
	const each = 1000
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range each {
				o.Observe(rejection(time.Now()))
				o.Observe(call(time.Now()))
			}
		})
	}
	for range 5 {
		o.AddServer("main", server{someLevels()})
		read(t, r)
	}
	all.Wait()
	got := read(t, r)
	latencies, _ := points(got["spillway.latency"])
	routes, _ := points(got["spillway.route_rejected"])
	if latencies["role=client"] != 4*each || routes["reason=queue_full route=GET /carts/{id}"] != 4*each {
		t.Errorf("got %v, %v", latencies, routes)
	}
}
