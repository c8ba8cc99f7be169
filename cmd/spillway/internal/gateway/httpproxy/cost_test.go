package httpproxy

import (
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestCostOfRequests: routes and endpoints say what a request costs, and clients never see it.
func TestCostOfRequests(t *testing.T) {
	const hour = 3600.
	for name, test := range map[string]struct {
		base    float64 // quota.cost
		route   float64
		reports bool
		says    []string // of the endpoint
		want    float64
	}{
		"by default":              {want: 1},
		"of the quota":            {base: 5, want: 5},
		"of the route":            {route: 20, want: 20},
		"less than the quota's":   {base: 5, route: 2, want: 2},
		"a route that is free":    {route: -1, want: 0},
		"of an endpoint":          {route: 20, reports: true, says: []string{"7.5"}, want: 7.5},
		"free after all":          {reports: true, says: []string{"0"}, want: 0},
		"not trusted":             {says: []string{"100"}, want: 1},
		"not trusted, of a route": {route: 20, says: []string{"0"}, want: 20},
		"negative":                {reports: true, says: []string{"-5"}, want: 1},
		"infinite":                {reports: true, says: []string{"Inf"}, want: 1},
		"not a number":            {reports: true, says: []string{"NaN"}, want: 1},
		"too much":                {reports: true, says: []string{"1e7"}, want: 1},
		"nonsense":                {reports: true, says: []string{"many"}, want: 1},
		"twice":                   {reports: true, says: []string{"3", "4"}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			url, p := front(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()[costHeader] = test.says
			}), func(c *config.Config) {
				c.Mode = "enforce"
				c.Clusters[0].ReportsCost = test.reports
				c.Clusters[0].Quota = &config.Quota{
					Cost: test.base, BurstSeconds: hour, Customers: map[string]config.Limit{"mail": {Rate: 10 / hour}},
				}
				c.Routes = []config.Route{{Cost: test.route, Customer: config.Customer{Header: "X-Customer", Trusted: true}}}
			})
			resp, _ := do(t, client(t, false), http.MethodGet, url, "", "X-Customer", "mail")
			if resp.StatusCode != http.StatusOK || resp.Header[costHeader] != nil {
				t.Errorf("%d, %v", resp.StatusCode, resp.Header)
			}
			got := -1.
			for _, s := range p.Stats(time.Now()).Gates[0].Quota {
				if s.Customer == "mail" {
					got = s.Debt * 10
				}
			}
			// The debt is paid at 0.003 per second.
			if !(got <= test.want+1e-6 && got >= test.want-0.5) {
				t.Errorf("the customer owes %v, want %v", got, test.want)
			}
		})
	}
}

// TestStrangersPayForThemselves: customers that are not listed pay what an endpoint reports of their own requests.
func TestStrangersPayForThemselves(t *testing.T) {
	url, _ := front(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(costHeader, r.Header.Get("X-Cost"))
	}), func(c *config.Config) {
		c.Mode = "enforce"
		c.Clusters[0].ReportsCost = true
		c.Clusters[0].Quota = &config.Quota{DefaultLimit: config.Limit{Rate: 0.1}, BurstSeconds: 3600}
		c.Routes = []config.Route{{Customer: config.Customer{Header: "X-Customer", Trusted: true}}}
	})
	served := map[string]int{}
	for range 20 {
		for customer, cost := range map[string]string{"honest": "1", "expensive": "60"} {
			resp, _ := do(t, client(t, false), http.MethodGet, url, "", "X-Customer", customer, "X-Cost", cost)
			if resp.StatusCode == http.StatusOK {
				served[customer]++
			}
		}
	}
	// A bucket holds 360, three quarters of it for requests of this class.
	if served["honest"] != 20 || served["expensive"] != 5 {
		t.Errorf("%v of 20 requests are served, want all and 5", served)
	}
}

// TestLearnedCostsAreKept: the gates of a cluster share what is learned by its load reports. A new configuration keeps
// it unless it changes how costs are learned.
func TestLearnedCostsAreKept(t *testing.T) {
	var c *config.Config
	url, p := front(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Endpoint-Load-Metrics", "TEXT cpu_utilization=0.5,rps_fractional=10")
	}), func(made *config.Config) {
		c = made
		c.Mode = "enforce"
		c.Clusters[0].Balance.LoadReports = &config.LoadReports{}
		c.Clusters[0].Quota = &config.Quota{Customers: map[string]config.Limit{"mail": {Rate: 1000}}}
		c.Clusters[0].LearnCosts = &config.LearnCosts{}
		c.Routes = []config.Route{{Customer: config.Customer{Header: "X-Customer", Trusted: true}}}
	})
	counted := func() (n uint64) {
		for _, k := range p.Stats(time.Now()).Clusters["upstream"].Costs.Keys {
			if k.Key == "mail" {
				n = k.Calls
			}
		}
		return n
	}
	calls := func(want uint64) {
		t.Helper()
		resp, _ := do(t, client(t, false), http.MethodGet, url, "", "X-Customer", "mail")
		if resp.StatusCode != http.StatusOK || resp.Header["Endpoint-Load-Metrics"] != nil {
			t.Errorf("%d, %v", resp.StatusCode, resp.Header)
		}
		for end := time.Now().Add(time.Minute); counted() != want; runtime.Gosched() { // it is settled after the answer
			if time.Now().After(end) {
				t.Fatalf("%d calls are counted, want %d", counted(), want)
			}
		}
	}
	if _, err := p.clusters["upstream"].Processor(); err != nil {
		t.Errorf("before any request: %v", err)
	}
	calls(1)
	if _, err := p.clusters["upstream"].Processor(); err != nil {
		t.Errorf("all that was sent is in a report: %v", err)
	}
	next := *c
	next.Clusters = []config.Cluster{c.Clusters[0]}
	next.Clusters[0].RetryAfter = time.Minute
	if err := p.Update(&next); err != nil {
		t.Fatal(err)
	}
	calls(2)
	last := next
	last.Clusters = []config.Cluster{next.Clusters[0]}
	last.Clusters[0].LearnCosts = &config.LearnCosts{Unit: time.Second}
	if err := p.Update(&last); err != nil {
		t.Fatal(err)
	}
	calls(1)
	tuned := last
	tuned.Clusters = []config.Cluster{last.Clusters[0]}
	tuned.Clusters[0].RateLimit = config.RateLimit{Rate: 1000}
	tuned.Clusters[0].Tune = &config.Tune{Mode: "observe", Latency: time.Second, Limit: config.TuneRate}
	if err := p.Update(&tuned); err != nil {
		t.Fatal(err)
	}
	calls(2) // a limit that moves changes the gates, too
}
