package telemetry

import (
	"maps"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/ingress"
)

// stats is a server with the same Stats at all times.
type stats ingress.Stats

func (s stats) Stats(time.Time) ingress.Stats { return ingress.Stats(s) }

// Keys with calls have a cost, its error, and whether it is used.
func TestCosts(t *testing.T) {
	var s Sources
	s.AddServer("api", stats{Costs: cost.Stats{Keys: []cost.KeyStats{
		{Key: ""},
		{Key: "mail", Cost: 12 * time.Millisecond, StandardError: time.Millisecond, Used: true, Calls: 7},
		{Key: "new", Cost: time.Millisecond, StandardError: time.Millisecond, Calls: 1},
	}}})
	got := map[string]float64{}
	s.Levels(1, func(m *Metric, value float64, labels ...string) {
		if m == &Cost || m == &CostError || m == &CostUsed {
			got[m.Name+" "+labels[0]+" "+labels[1]] = value
		}
	})
	want := map[string]float64{
		"spillway_cost_seconds api mail": 0.012, "spillway_cost_error_seconds api mail": 0.001, "spillway_cost_used api mail": 1,
		"spillway_cost_seconds api new": 0.001, "spillway_cost_error_seconds api new": 0.001, "spillway_cost_used api new": 0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
