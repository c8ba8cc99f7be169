//go:build linux

package spillhttp

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/cputime"
	"github.com/seed90641741/spillway/quota"
)

// A customer that is not listed is charged the processor time that its own requests have used, from the first one
// on, and another one pays nothing of it.
func TestMeasuredCost(t *testing.T) {
	t.Parallel()
	local := must(quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 1}}))
	h := mustHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Customer") == "expensive" {
			use(30 * time.Millisecond)
		}
	}), ingress.Config{
		Quota: quota.Config{Allocator: local, BurstSeconds: 100, Cost: 0.1}, Costs: must(cost.New(cost.Config{})), Shed: patient,
	}, HandlerConfig{Classify: func(r *http.Request) spillway.Call { return spillway.Call{Customer: r.Header.Get("X-Customer")} }})
	served := map[string]int{}
	for range 10 {
		for _, customer := range []string{"honest", "expensive"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Header.Set("X-Customer", customer)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code == http.StatusOK {
				served[customer]++
			}
		}
	}
	// A bucket holds 100 ms, three quarters of it for requests of this class.
	if served["honest"] != 10 || served["expensive"] < 2 || served["expensive"] > 4 {
		t.Errorf("%v of 10 requests are served, want all and 3", served)
	}
}

// use works until the thread has used some processor time.
func use(d time.Duration) {
	for from, _ := cputime.Thread(); ; {
		if to, _ := cputime.Thread(); to-from >= d {
			return
		}
	}
}
