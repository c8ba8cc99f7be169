package httpproxy

import (
	"net/http"
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
