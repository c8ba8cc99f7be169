package exporters

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/customers"
	"github.com/seed90641741/spillway/internal/admin/quotastats"
	"github.com/seed90641741/spillway/internal/admin/resets"
	"github.com/seed90641741/spillway/internal/telemetry"
	"github.com/seed90641741/spillway/retry"
)

// scrape returns the metrics by name, as Prometheus reads them.
func scrape(t *testing.T, h http.Handler) map[string]*dto.MetricFamily {
	t.Helper()
	w := get(t, h)
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	all, err := p.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// series returns how many series metrics are, as a server that stores them counts.
func series(all map[string]*dto.MetricFamily) (n int) {
	for _, f := range all {
		for _, m := range f.GetMetric() {
			switch {
			case m.GetHistogram() != nil:
				n += len(m.GetHistogram().GetBucket()) + 2
			case m.GetSummary() != nil:
				n += len(m.GetSummary().GetQuantile()) + 2
			default:
				n++
			}
		}
	}
	return n
}

// everything sends c each event that policies can send in a mode.
func everything(c *collector.Collector, mode spillway.Mode, cluster string, names ...string) {
	for class := spillway.Sheddable; class <= spillway.CriticalPlus; class++ {
		call := spillway.Call{Criticality: class, Key: cluster}
		for _, name := range names {
			for o := spillway.OutcomeServed; o <= spillway.OutcomeAbandoned; o++ {
				c.Observe(spillway.Event{Policy: name, Call: call, Outcome: o, Mode: mode})
			}
			for _, r := range telemetry.ReasonsOf(name) {
				c.Observe(spillway.Event{Policy: name, Call: call, Rejected: true, Mode: mode, Reason: r})
			}
		}
		for r := range retry.Reasons {
			c.Observe(spillway.Event{Policy: "retry", Call: call, Outcome: spillway.OutcomeFailed, Err: &retry.Error{Err: errors.New("failed"), Reason: retry.Reason(r), Attempts: 2}})
		}
	}
}

// TestSeries bounds the number of series after all events: with ten routes to one cluster and
// to ten clusters.
func TestSeries(t *testing.T) {
	byDefault := []string{"shed", "throttle", "inflight", "retry"}
	for clusters, asked := range map[int][]string{1: append([]string{"ratelimit", "quota", "batch"}, byDefault...), 10: byDefault} {
		s := newScene(spillway.ModeEnforce)
		l := &s.levels
		for i := 1; i < clusters; i++ {
			g, x := l.Gates[0], l.Clusters[0]
			g.Cluster, x.Name = fmt.Sprint("web", i), fmt.Sprint("web", i)
			l.Gates, l.Clusters = append(l.Gates, g), append(l.Clusters, x)
		}
		book := s.collector.Accounts()
		for i := range 10 {
			everything(s.collector, spillway.ModeEnforce, l.Clusters[i%clusters].Name, asked...)
			for reason := range accounts.Reason(3) { // a route knows few
				at := book.At(accounts.Place{Listener: "main", Cluster: l.Clusters[i%clusters].Name, Route: fmt.Sprint("/", i)})
				book.Begin()
				book.End(accounts.End{Account: accounts.Rejected, Reason: reason, At: at})
			}
		}
		s.second()
		n, most := series(scrape(t, s.Handler())), 230+150*clusters
		if n >= most {
			t.Errorf("%d clusters: %d series, want fewer than %d", clusters, n, most)
		}
		t.Logf("%d clusters: %d series", clusters, n)
	}
}

// TestNoticesAreMetrics: each kind has a series, and a notice raises its own.
func TestNoticesAreMetrics(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	l := &s.levels
	l.Notices = []admin.Notice{{Kind: telemetry.NoticeLog, Headline: "The log cannot be written."}, {Kind: telemetry.NoticeLog, Headline: "The access log cannot be written."}}
	l.Logs = []admin.Log{{Name: "program", Lost: 7}, {Name: "access"}}
	s.second()
	m := scrape(t, s.Handler())
	got := make(map[string]float64)
	for _, x := range m["spillway_notice"].GetMetric() {
		got[label(x, "kind")] = x.GetGauge().GetValue()
	}
	for _, kind := range telemetry.Notices {
		want := 0.0
		if kind == telemetry.NoticeLog {
			want = 2
		}
		if n, ok := got[kind]; !ok || n != want {
			t.Errorf("%s is %v, %v, want %v", kind, n, ok, want)
		}
	}
	if lost := m["spillway_log_lines_lost_total"].GetMetric(); len(got) != len(telemetry.Notices) || len(lost) != 2 || lost[0].GetCounter().GetValue()+lost[1].GetCounter().GetValue() != 7 {
		t.Errorf("%v, %v", got, lost)
	}
}

// TestSeriesOfNothing holds that a proxy that was just started has the metrics that
// alerts ask for.
func TestSeriesOfNothing(t *testing.T) {
	s := newScene(spillway.ModeObserve)
	m := scrape(t, s.Handler())
	for _, name := range []string{"spillway_limit", "spillway_in_flight", "spillway_in_flight_max", "spillway_queue_length", "spillway_retries_total", "spillway_throttle_ratio", "spillway_criticality_missing_total", "spillway_overrides", "spillway_ready"} {
		if m[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	if n := series(m); n > 75 {
		t.Errorf("%d series of a proxy that has done nothing", n)
	}
}

// TestUnlistedCustomers: the limit of all customers together that a quota does not list has metrics.
func TestUnlistedCustomers(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.levels.Customers = []customers.Customer{
		{Listener: "main", Cluster: "web", Unlisted: true, Limit: 50, Admitted: 7, Rejected: 3},
		{Listener: "main", Cluster: "web", Customer: "acme", Limit: 10, Admitted: 1},
	}
	s.second()
	all := scrape(t, s.Handler())
	if f := all["spillway_quota_unlisted_limit"].GetMetric(); len(f) != 1 || f[0].GetGauge().GetValue() != 50 || label(f[0], "cluster") != "web" {
		t.Errorf("the limit is %v", f)
	}
	got := map[string]float64{}
	for _, m := range all["spillway_quota_unlisted_requests_total"].GetMetric() {
		got[label(m, "outcome")] = m.GetCounter().GetValue()
	}
	if !maps.Equal(got, map[string]float64{"admitted": 7, "rejected": 3}) {
		t.Errorf("the requests are %v", got)
	}
}

// TestCustomersInMetrics: rejections have a series for each of the customers with most of them, also among names that come
// once, and requests for each class. Who may not see customers gets the sum.
func TestCustomersInMetrics(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.quiet = true
	log := s.decisions
	reject := func(customer string, class spillway.Criticality, mode spillway.Mode, n int) {
		for range n {
			log.Observe(spillway.Event{
				Time: noon, Policy: "quota", Rejected: true, Reason: spillway.ReasonQuota, Mode: mode, Call: spillway.Call{Customer: customer, Criticality: class},
			})
		}
	}
	reject("acme", spillway.Sheddable, spillway.ModeEnforce, 3000)
	reject("acme", spillway.Critical, spillway.ModeEnforce, 2000)
	reject("acme", spillway.Critical, spillway.ModeObserve, 500)
	reject("", spillway.Critical, spillway.ModeEnforce, 1000)
	for i := range 10000 {
		reject(fmt.Sprint("name ", i), spillway.Critical, spillway.ModeEnforce, 1)
	}
	s.levels.Customers = []customers.Customer{
		{Listener: "main", Cluster: "web", Customer: "acme", Listed: true, Limit: 30, UsedRate: 29},
		{Listener: "main", Cluster: "web", Customer: "free", Listed: true, UsedRate: 5},
		{Listener: "main", Cluster: "web", Customer: "name 1", Limit: 10, UsedRate: 10},
	}
	s.second()
	all := scrape(t, s.Handler())
	got, sum := map[string]float64{}, 0.
	for _, m := range all["spillway_customer_rejected_total"].GetMetric() {
		got[strings.Join([]string{label(m, "customer"), label(m, "criticality"), label(m, "reason")}, " ")] = m.GetCounter().GetValue()
		sum += m.GetCounter().GetValue()
	}
	for labels, want := range map[string]float64{"acme SHEDDABLE quota": 3000, "acme CRITICAL quota": 2000, " CRITICAL quota": 1000} {
		if got[labels] != want {
			t.Errorf("%q: %v, want %v", labels, got[labels], want)
		}
	}
	if len(got) > telemetry.DefaultCustomers+1 || sum != 16000 {
		t.Errorf("%d series with a sum of %v, want 16000: %v", len(got), sum, got)
	}
	levels := map[string]float64{}
	for _, name := range []string{"spillway_quota_share", "spillway_quota_use"} {
		for _, m := range all[name].GetMetric() {
			levels[name+" "+label(m, "customer")+" "+label(m, "cluster")] = m.GetGauge().GetValue()
		}
	}
	if want := map[string]float64{"spillway_quota_share acme web": 30, "spillway_quota_use acme web": 29, "spillway_quota_use free web": 5}; !maps.Equal(levels, want) {
		t.Errorf("%v, want %v", levels, want)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil) // from another host
	r.Host = "127.0.0.1:8001"
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if text := w.Body.String(); strings.Contains(text, "acme") || !strings.Contains(text, `spillway_customer_rejected_total{criticality="",customer="",reason=""} 16000`) {
		t.Errorf("without a token from another host: %s", text)
	}
}

// TestClassesInMetrics: the requests of each class that has come are in accounts.
func TestClassesInMetrics(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.quiet = true
	book := s.collector.Accounts()
	for _, a := range []accounts.Account{accounts.Served, accounts.Served, accounts.Late} {
		book.Begin()
		book.End(accounts.End{Account: a, Criticality: spillway.Sheddable, At: book.At(accounts.Place{Listener: "main", Cluster: "web"})})
	}
	s.second()
	got := map[string]float64{}
	for _, m := range scrape(t, s.Handler())["spillway_class_requests_total"].GetMetric() {
		got[label(m, "account")+" "+label(m, "criticality")] += m.GetCounter().GetValue()
	}
	if got["served SHEDDABLE"] != 2 || got["late SHEDDABLE"] != 1 {
		t.Errorf("%v, want two served and a late one", got)
	}
}

// TestListenersOfOneName: an HTTP and a MongoDB listener with the same name share one
// series.
func TestListenersOfOneName(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.levels.Listeners = append(s.levels.Listeners, admin.Listener{Name: "main", Open: 3, RejectedBy: resets.Counts{MaxConnections: 2, Peers: 1}})
	s.second()
	open := scrape(t, s.Handler())["spillway_connections"].GetMetric()
	if len(open) != 1 || open[0].GetGauge().GetValue() != 15 {
		t.Errorf("got %v, want 15 of main", open)
	}
	got := make(map[string]float64)
	for _, m := range scrape(t, s.Handler())["spillway_connections_rejected_total"].GetMetric() {
		got[m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
	}
	if !maps.Equal(got, map[string]float64{"connection_rate": 5, "max_connections": 2, "peers": 1, "overload": 0, "max_header_bytes": 0}) {
		t.Errorf("reset connections: %v", got)
	}
}

func TestMetricsAreWellFormed(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	l := &s.levels
	l.Clusters[0].Queue = &admin.Queue{Busy: 1, Places: 16, Waiting: 3, Waits: admin.Waits{Count: 4, Total: 8e9}}
	l.Gates[0].Waits = admin.Waits{Count: 2, Total: 1e9}
	l.Tuned = []admin.Tuned{{Name: "web", Value: 12}}
	l.Override = &admin.Override{Field: "mode"}
	s.seconds(3)
	problems, err := promlint.New(get(t, s.Handler()).Body).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	m := scrape(t, s.Handler())
	waits := m["spillway_queue_wait_seconds"].GetMetric()
	if len(waits) != 2 || waits[0].GetSummary().GetSampleSum()+waits[1].GetSummary().GetSampleSum() != 9 {
		t.Errorf("waits %v", waits)
	}
	if m["spillway_overrides"].GetMetric()[0].GetGauge().GetValue() != 1 {
		t.Error("the override does not show")
	}
	open := get(t, s.Handler(), "Accept", "application/openmetrics-text; version=1.0.0")
	if text := open.Body.String(); !strings.HasPrefix(open.Header().Get("Content-Type"), "application/openmetrics-text") || !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("OpenMetrics: %v", open.Header())
	}
}

// TestMetricsAgree: the metrics are what the last State says.
func TestMetricsAgree(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.seconds(15)
	st, m := s.State(), scrape(t, s.Handler())
	bySum := make(map[string]float64)
	for _, f := range m["spillway_decisions_total"].GetMetric() {
		bySum[label(f, "policy")+" "+label(f, "outcome")+" "+label(f, "reason")+" "+label(f, "mode")] += f.GetCounter().GetValue()
	}
	for _, r := range st.Reasons {
		if got := bySum[r.Policy+" "+r.Outcome+" "+r.Reason+" "+r.Mode]; got != sum(r.Total) || got == 0 {
			t.Errorf("metrics have %v of %+v", got, r)
		}
	}
	served := float64(st.Totals.Accounts.Of(accounts.Served))
	if got := bySum["retry admitted  enforce"]; got != served || got == 0 {
		t.Errorf("metrics have %v served, want %v", got, served)
	}
	for name, want := range map[string]float64{
		"spillway_in_flight": float64(st.Mean.InFlight), "spillway_in_flight_max": float64(st.Gates[0].Peak), "spillway_limit": *st.Mean.Limit,
		"spillway_retry_budget_ratio": *st.Mean.Budget, "spillway_throttle_ratio": st.Mean.Throttle[0], "spillway_base_latency_seconds": 0.005,
	} {
		if got := m[name].GetMetric()[0].GetGauge().GetValue(); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := m["spillway_latency_seconds"].GetMetric()[0].GetHistogram().GetSampleCount(); got != st.Totals.Latency[0].Total() || got == 0 {
		t.Errorf("%d latencies, want %d", got, st.Totals.Latency[0].Total())
	}
}

func sum(of admin.Classes) (all float64) {
	for _, v := range of {
		all += v
	}
	return all
}

// TestService: a service of quotas has the metrics of its quotas and no others.
func TestService(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	service := &quotastats.Service{Quota: "shop", Envoys: 3, Listed: 12, Unlisted: 1234, Reports: 50, Overflow: 7, Invalid: 2}
	service.Calls[0].RejectedTotal = 2400
	s.levels = admin.Levels{Service: service, Quotas: []quotastats.Stats{{Name: "shop", Customers: []quotastats.Customer{{Customer: "mail", Rate: 1000}}}}}
	s.quiet = true
	s.second()
	all, err := Registry(s.State, true).Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := make(map[string]int)
	for _, f := range all {
		series[f.GetName()] = len(f.GetMetric())
	}
	for name, want := range map[string]int{
		"spillway_quota_calls_total":   8,
		"spillway_quota_reports_total": 3,
		"spillway_quota_buckets":       2,
		"spillway_quota_envoys":        1,
		"spillway_ready":               1,
		"spillway_retries_total":       0,
	} {
		if series[name] != want {
			t.Errorf("%s has %d series, want %d", name, series[name], want)
		}
	}
	if text := get(t, s.Handler()).Body.String(); !strings.Contains(text, `spillway_quota_calls_total{criticality="SHEDDABLE",outcome="rejected",quota="shop"} 2400`) ||
		!strings.Contains(text, `spillway_quota_reports_total{quota="shop",result="overflow"} 7`) || !strings.Contains(text, `spillway_quota_rate{customer="mail",quota="shop"} 1000`) {
		t.Errorf("the metrics are %s", text)
	}
}
