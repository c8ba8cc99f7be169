package spillprom

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

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
	"github.com/seed90641741/spillway/retry"
)

func collector(t testing.TB, c Config) *Collector {
	t.Helper()
	x, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// gather returns the metrics by name, checked as a scrape checks them.
func gather(t testing.TB, x *Collector) map[string]*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(x)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*dto.MetricFamily)
	for _, f := range families {
		all[f.GetName()] = f
	}
	return all
}

// values returns the values of a metric by its labels, in the order of the table.
func values(f *dto.MetricFamily) map[string]float64 {
	all := make(map[string]float64)
	for _, m := range f.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		all[strings.Join(labels, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return all
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
	l := &levels{client: map[string]egress.Stats{"db": {InFlight: inflight.Stats{InFlight: 3, MaxInFlight: 10}}}, tokens: budget.Stats{Tokens: 25, Capacity: 100}}
	s := l.client["db"]
	s.Throttle[2].Probability = 0.25
	l.client["db"] = s
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

// everything sends one event of each kind that policies can report, for each class, and hedges.
func everything(x *Collector, policies ...string) {
	now := time.Now()
	for _, e := range []spillway.Event{{Outcome: spillway.OutcomeServed}, {Outcome: spillway.OutcomeAbandoned}, {Rejected: true}} {
		e.Time, e.Policy, e.Latency = now, "hedge", time.Second
		x.Observe(e)
	}
	for class := spillway.Sheddable; class <= spillway.CriticalPlus; class++ {
		call := spillway.Call{Criticality: class, Key: "GET /", Customer: "shop"}
		for _, policy := range policies {
			for o := spillway.OutcomeServed; int(o) < spillway.Outcomes; o++ {
				x.Observe(spillway.Event{Time: now, Policy: policy, Call: call, Outcome: o, Latency: time.Second})
			}
			for _, why := range telemetry.ReasonsOf(policy) {
				x.Observe(spillway.Event{Time: now, Policy: policy, Call: call, Rejected: true, Reason: why})
			}
		}
		for why := range retry.Reasons {
			x.Observe(spillway.Event{Time: now, Policy: "retry", Call: call, Outcome: spillway.OutcomeFailed, Err: &retry.Error{
				Err: errors.New("x"), Why: errors.New("y"), Reason: retry.Reason(why), Attempts: 2,
			}})
		}
	}
}

type shared fleet.Stats

func (s shared) Stats(time.Time) fleet.Stats { return fleet.Stats(s) }

// TestTable: the metrics match the table: its types and labels, and the linter
// of Prometheus (promtool check metrics) finds nothing.
func TestTable(t *testing.T) {
	x := collector(t, Config{})
	l := someLevels()
	x.AddServer("main", server{l})
	x.AddClient(l)
	x.AddBudget("db", bucket{l})
	x.AddQuota("shop", shared{SyncsTotal: 1, Age: time.Second})
	everything(x, telemetry.Policies[:]...)
	all := gather(t, x)
	types := map[telemetry.Type]dto.MetricType{
		telemetry.Counter: dto.MetricType_COUNTER, telemetry.Gauge: dto.MetricType_GAUGE, telemetry.Histogram: dto.MetricType_HISTOGRAM,
	}
	var families []*dto.MetricFamily
	for _, m := range telemetry.Metrics {
		f := all[m.Name]
		if !m.OfLibrary() {
			if f != nil {
				t.Errorf("%s is of the proxy only", m.Name)
			}
			continue
		}
		if f == nil || f.GetType() != types[m.Type] || f.GetHelp() != m.Help {
			t.Errorf("%s is %v", m.Name, f)
			continue
		}
		want := make(map[string]bool)
		for _, label := range m.Labels {
			want[label] = true
		}
		for _, l := range f.GetMetric()[0].GetLabel() {
			if !want[l.GetName()] {
				t.Errorf("%s has the label %s", m.Name, l.GetName())
			}
			delete(want, l.GetName())
		}
		if len(want) > 0 {
			t.Errorf("%s lacks the labels %v", m.Name, want)
		}
		families = append(families, f)
		delete(all, m.Name)
	}
	if len(all) > 0 {
		t.Errorf("not in the table: %v", all)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestValues has some events and levels, and their metrics.
func TestValues(t *testing.T) {
	x := collector(t, Config{})
	l := someLevels()
	x.AddServer("main", server{&levels{}})
	x.AddServer("main", server{l}) // replaces it
	x.AddClient(l)
	x.AddClient(l) // a second client of the same backend
	x.AddBudget("db", bucket{l})
	x.AddBudget("none", bucket{&levels{}})
	now := time.Now()
	call := spillway.Call{Key: "GET /carts/{id}", Customer: "shop", Criticality: spillway.Sheddable}
	rejected := spillway.Event{Time: now, Policy: "shed", Call: call, Rejected: true, Reason: spillway.ReasonQueueFull}
	observed := rejected
	observed.Mode = spillway.ModeObserve
	retried := spillway.Event{Time: now, Policy: "retry", Outcome: spillway.OutcomeServed, Latency: 3 * time.Millisecond}
	retried.Call.Attempt = 2
	for _, e := range []spillway.Event{
		rejected, rejected, observed, retried,
		{Time: now, Policy: "shed", Outcome: spillway.OutcomeTimedOut, Latency: time.Second},
		{Time: now, Policy: "throttle", Outcome: spillway.OutcomeServed, Latency: time.Second},
	} {
		x.Observe(e)
	}
	all := gather(t, x)
	for name, want := range map[string]map[string]float64{
		"spillway_retries_total":           {"": 2},
		"spillway_latency_seconds":         {"role=client": 1, "role=server": 1},
		"spillway_route_rejected_total":    {"reason=queue_full route=GET /carts/{id}": 2, "reason= route=": 0},
		"spillway_customer_rejected_total": {"criticality=SHEDDABLE customer=shop reason=queue_full": 2, "criticality= customer= reason=": 0},
		"spillway_quota_share":             {"cluster= customer=mail listener=main": 30},
		"spillway_quota_use":               {"cluster= customer=mail listener=main": 20},
		"spillway_in_flight":               {"cluster= listener=main": 7, "cluster=db listener=": 6},
		"spillway_limit":                   {"cluster= listener=main": 12, "cluster=db listener=": 20},
		"spillway_queue_length":            {"cluster= listener=main": 5},
		"spillway_base_latency_seconds":    {"cluster= listener=main": 0.005},
		"spillway_utilization_ratio":       {"cluster= listener=main": 0.5},
		"spillway_throttle_ratio":          {"cluster=db": 0.25},
		"spillway_quota_unlisted_limit":    {"cluster= listener=main": 50},
		"spillway_quota_unlisted_requests_total": {
			"cluster= listener=main outcome=admitted": 6, "cluster= listener=main outcome=rejected": 8,
		},
		"spillway_retry_budget_ratio": {"cluster=db": 0.25},
	} {
		if got := values(all[name]); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	decisions := values(all["spillway_decisions_total"])
	for labels, want := range map[string]float64{
		"criticality=SHEDDABLE mode=enforce outcome=rejected policy=shed reason=queue_full": 2,
		"criticality=SHEDDABLE mode=observe outcome=rejected policy=shed reason=queue_full": 1,
		"criticality=CRITICAL mode=enforce outcome=admitted policy=retry reason=":           1,
		"criticality=CRITICAL mode=enforce outcome=late policy=shed reason=deadline":        1,
		"criticality=CRITICAL mode=enforce outcome=admitted policy=throttle reason=":        1,
	} {
		if decisions[labels] != want {
			t.Errorf("%s is %v, want %v", labels, decisions[labels], want)
		}
	}
}

// TestNoLevel: what is infinite or unknown has no metric.
func TestNoLevel(t *testing.T) {
	x := collector(t, Config{MaxRoutes: -1, MaxCustomers: -1})
	l := &levels{}
	l.server.Concurrency.Shared.Limit, l.server.Load.Utilization = math.Inf(1), math.NaN()
	x.AddServer("main", server{l})
	all := gather(t, x)
	for _, name := range []string{
		"spillway_limit", "spillway_utilization_ratio", "spillway_base_latency_seconds",
		"spillway_route_rejected_total", "spillway_customer_rejected_total", "spillway_latency_seconds",
	} {
		if all[name] != nil {
			t.Errorf("%s is %v", name, all[name])
		}
	}
}

func TestExemplars(t *testing.T) {
	type key struct{}
	asked := 0
	x := collector(t, Config{Exemplar: func(ctx context.Context) string {
		asked++
		id, _ := ctx.Value(key{}).(string)
		return id
	}})
	now := time.Now()
	trace := func(at time.Duration, latency time.Duration, id string) {
		e := spillway.Event{Time: now.Add(at), Policy: "shed", Outcome: spillway.OutcomeServed, Latency: latency}
		if id != "none" {
			e.Context = context.WithValue(context.Background(), key{}, id)
		}
		x.Observe(e)
	}
	trace(0, time.Second, "none")
	trace(0, 1e9, "first")
	for i := range 1000 {
		trace(time.Duration(i)*time.Microsecond, 1e9, "too soon")
	}
	trace(0, 10*time.Millisecond, "fast")
	trace(0, 10*time.Hour, strings.Repeat("long\xff", 100))
	got := make(map[string]float64)
	for _, b := range gather(t, x)["spillway_latency_seconds"].GetMetric()[0].GetHistogram().GetBucket() {
		if e := b.GetExemplar(); e != nil {
			got[e.GetLabel()[0].GetName()+"="+e.GetLabel()[0].GetValue()] = e.GetValue()
		}
	}
	want := map[string]float64{"trace_id=first": 1, "trace_id=fast": 0.01, "trace_id=" + strings.Repeat("long", 20): 36000}
	if fmt.Sprint(got) != fmt.Sprint(want) || asked != 3 {
		t.Errorf("got %v after %d calls, want %v", got, asked, want)
	}
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]Config{
		"spillprom: MaxRoutes is 65, must be at most 64, or negative for none":    {MaxRoutes: 65},
		"spillprom: MaxCustomers is 65, must be at most 64, or negative for none": {MaxCustomers: 65},
	} {
		if _, err := New(c); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestConcurrent has events counted while metrics are read, and none lost.
func TestConcurrent(t *testing.T) {
	x := collector(t, Config{Exemplar: func(context.Context) string { return "id" }})
	x.AddServer("main", server{someLevels()})
	const each = 2000
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range each {
				x.Observe(spillway.Event{
					Time: time.Now(), Policy: "quota", Rejected: n%2 == 0, Reason: spillway.ReasonQuota, Outcome: spillway.OutcomeServed,
					Call: spillway.Call{Customer: fmt.Sprint("c", n%100), Key: fmt.Sprint(i)}, Context: context.Background(),
				})
			}
		})
	}
	for range 10 {
		gather(t, x)
	}
	all.Wait()
	families := gather(t, x)
	for name, want := range map[string]float64{
		"spillway_decisions_total": 4 * each, "spillway_route_rejected_total": 2 * each, "spillway_customer_rejected_total": 2 * each,
	} {
		sum := 0.0
		for _, v := range values(families[name]) {
			sum += v
		}
		if sum != want {
			t.Errorf("%s adds up to %v, want %v", name, sum, want)
		}
	}
}
