package spillprom

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/ingress"
)

type named struct{}

func (named) Stats(time.Time) ingress.Stats {
	return ingress.Stats{Costs: cost.Stats{Keys: []cost.KeyStats{{Key: "key\xff", Calls: 1}}}}
}

type full struct{}

func (full) Stats(now time.Time) budget.Stats { return budget.Stats{Capacity: 1} }

// TestNamesThatAreNotUTF8: a scrape reports them, and does not end the program.
func TestNamesThatAreNotUTF8(t *testing.T) {
	x := collector(t, Config{})
	x.AddServer("listener\xff", named{})
	x.AddBudget("cluster\xff", full{})
	r := prometheus.NewRegistry()
	r.MustRegister(x)
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
}
