//go:build linux

package ingress

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/internal/cputime"
	"github.com/seed90641741/spillway/quota"
)

// measured returns a server that learns costs, and the debt of a customer in milliseconds.
func measured(t *testing.T, c cost.Config) (*Server, func() float64) {
	t.Helper()
	local, err := quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	costs, err := cost.New(c)
	if err != nil {
		t.Fatal(err)
	}
	s := must(t, Config{Quota: quota.Config{Allocator: local, BurstSeconds: 3600, Cost: -1}, Costs: costs})
	return s, func() float64 {
		for _, c := range s.Stats(time.Now()).Quota {
			if c.Customer == "a" {
				return c.Debt * 360
			}
		}
		return 0
	}
}

// A request is charged what its goroutine uses, and nothing where the cost is that of another
// process, or too many requests are measured. Each Meter gives back its place.
func TestMeter(t *testing.T) {
	other := cost.Config{CPU: func() (time.Duration, error) { return 0, nil }}
	for name, row := range map[string]struct {
		config cost.Config
		others int32
		want   float64
	}{"own": {want: 20}, "of another process": {config: other}, "too many": {others: maxMeters}} {
		s, debt := measured(t, row.config)
		meters.Add(row.others)
		before := meters.Load()
		p, r := enter(s, spillway.Call{Customer: "a"})
		if r.Rejected() {
			t.Fatal(r)
		}
		m := p.Measure()
		for from, _ := cputime.Thread(); ; {
			if to, _ := cputime.Thread(); to-from >= 20*time.Millisecond {
				break
			}
		}
		m.End()
		p.Done(spillway.OutcomeServed)
		if after := meters.Load(); after != before {
			t.Errorf("%s: %d requests are measured after the end", name, after-before)
		}
		meters.Add(-row.others)
		if got := debt(); got < 0.9*row.want || got > row.want+15 {
			t.Errorf("%s: %.1f ms are charged, want %v", name, got, row.want)
		}
	}
	p := new(Slot) // of an exempt request
	p.Measure().End()
}
