package ingress

import (
	"reflect"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/internal/requests"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// The core has each field that is set.
func TestConfigReachesTheCore(t *testing.T) {
	c := Config{
		RateLimit: ratelimit.Config{Rate: 1}, Quota: perCustomer(t, 1), Costs: new(cost.Estimator),
		CostKey: func(spillway.Call) string { return "" }, MaxInFlight: 1, Shed: shed.Config{MaxWait: time.Second},
		Concurrency: concurrency.Config{MaxInFlight: 1}, LimitKey: func(string) string { return "" }, ProxyOnly: true,
		Load: load.Config{Targets: load.Targets{CPU: 1}}, RateLimitMode: 1, QuotaMode: 1, InFlightMode: 1, ShedMode: 1,
		Attempts: attempts.Config{Share: 0.5}, Trust: Trust{Boundary: Internal, AcceptRatio: true},
		Exempt: func(spillway.Call) bool { return false }, RetryAfter: time.Second, Rand: func() float64 { return 0 },
		Observer: spillway.ObserverFunc(func(spillway.Event) {}),
	}
	core := c.requests()
	if want := (requests.Modes{RateLimit: 1, Quota: 1, InFlight: 1, Shed: 1}); core.Modes != want {
		t.Errorf("modes %+v", core.Modes)
	}
	for _, v := range []reflect.Value{reflect.ValueOf(c), reflect.ValueOf(core)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%v has no %s", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
}
