package telemetry

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota/fleet"
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
	s.Report(1, func(m *Metric, value float64, labels ...string) {
		if m == &Cost || m == &CostError || m == &CostUsed {
			got[m.Name+" "+labels[0]+" "+labels[1]] = value
		}
	}, nil)
	want := map[string]float64{
		"spillway_cost_seconds api mail": 0.012, "spillway_cost_error_seconds api mail": 0.001, "spillway_cost_used api mail": 1,
		"spillway_cost_seconds api new": 0.001, "spillway_cost_error_seconds api new": 0.001, "spillway_cost_used api new": 0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// silence is a board that never answers.
type silence struct{ fleet.Board }

func (silence) Sync(context.Context, fleet.Said) (fleet.Heard, error) {
	return fleet.Heard{}, errors.New("no answer")
}

// A shared quota whose board is away has errors, no age, and no tasks.
func TestQuotaWithoutABoard(t *testing.T) {
	f, err := fleet.New(fleet.Config{Tasks: 3})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i := range 4 {
		f.Sync(t.Context(), now.Add(time.Duration(i)*time.Second), silence{})
	}
	var s Sources
	s.AddQuota("shop", f)
	got := map[string]float64{}
	s.Report(1, func(m *Metric, value float64, labels ...string) { got[m.Name+" "+strings.Join(labels, " ")] = value },
		func(m *Metric, n uint64, labels ...string) { got[m.Name+" "+strings.Join(labels, " ")] = float64(n) })
	want := map[string]float64{
		"spillway_quota_syncs_total shop ok": 0, "spillway_quota_syncs_total shop error": 4, "spillway_quota_syncs_total shop fenced": 0,
		"spillway_quota_grace_seconds shop": 0, "spillway_quota_leader shop": 0, "spillway_quota_tasks shop": 0, "spillway_quota_config_conflict shop": 0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
