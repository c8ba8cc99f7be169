package requests

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A decision is a request of a customer with a quota: admitted and ended, or rejected.
type decision struct {
	core     *Core
	call     spillway.Call
	now      time.Time
	suspends bool
}

// decisions returns the same decision without costs, with costs of this process, and with those
// of other processes.
func decisions(tb testing.TB) map[string]*decision {
	tb.Helper()
	used := time.Duration(0)
	remote := cost.Config{CPU: func() (time.Duration, error) { used += time.Millisecond; return used, nil }}
	all := make(map[string]*decision)
	for name, row := range map[string]struct {
		costs    *cost.Config
		customer string
		rate     float64
		suspends bool
	}{
		"without costs": {customer: "mail", rate: 1e9}, "own costs": {costs: new(cost.Config), customer: "mail", rate: 1e9},
		"remote costs": {costs: &remote, customer: "mail", rate: 1e9}, "remote costs, unlisted": {costs: &remote, customer: "other", rate: 1e9},
		"remote costs, suspended": {costs: &remote, customer: "mail", rate: 1e9, suspends: true},
		"rejected, without costs": {customer: "mail", rate: 1e-6}, "rejected, remote costs": {costs: &remote, customer: "mail", rate: 1e-6},
	} {
		limit := quota.Limit{Rate: row.rate}
		local, err := quota.NewLocal(quota.LocalConfig{Customers: map[string]quota.Limit{"mail": limit}, DefaultLimit: limit})
		if err != nil {
			tb.Fatal(err)
		}
		c := Config{Quota: quota.Config{Allocator: local}}
		if row.costs != nil {
			if c.Costs, err = cost.New(*row.costs); err != nil {
				tb.Fatal(err)
			}
		}
		x := &decision{call: spillway.Call{Customer: row.customer, Key: "/"}, now: time.Now(), suspends: row.suspends}
		if x.core, err = New(c, Shell{State: func(time.Time) shed.State { return shed.State{Processors: 2} }}); err != nil {
			tb.Fatal(err)
		}
		all[name] = x
	}
	return all
}

func (x *decision) make(a *Admission, from *ratelimit.Caller) {
	x.now = x.now.Add(100 * time.Microsecond)
	if step := x.core.Enter(a, x.now, &x.call, from); step.Verdict != shed.Run {
		return
	}
	if x.suspends {
		a.Change(x.now, 1, 0)
		a.Change(x.now, -1, 0)
	}
	a.Done(x.now, spillway.OutcomeServed)
}

// TestDecisionsWithCostsDoNotAllocate covers a second and more of each decision, with the ends of
// rounds and intervals; the texts of rejections are made once per second.
func TestDecisionsWithCostsDoNotAllocate(t *testing.T) {
	race.SkipOneGoroutine(t)
	for name, x := range decisions(t) {
		a, from := new(Admission), new(ratelimit.Caller)
		for range 100 {
			x.make(a, from)
		}
		if n := testing.AllocsPerRun(50_000, func() { x.make(a, from) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkDecision is a decision with and without costs.
func BenchmarkDecision(b *testing.B) {
	for name, x := range decisions(b) {
		b.Run(name, func(b *testing.B) {
			a, from := new(Admission), new(ratelimit.Caller)
			b.ReportAllocs()
			for b.Loop() {
				x.make(a, from)
			}
		})
	}
}
