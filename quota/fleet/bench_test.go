package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/quota"
)

// gates returns quotas with n customers each, of one Fleet that has levels, and of a Local.
func gates(t testing.TB, n int) (global, local *quota.Quota, calls []spillway.Call) {
	c := Config{Tasks: 20, Limits: quota.LocalConfig{Customers: map[string]quota.Limit{}}}
	l := &Levels{Version: Version{1, 1}, Tasks: 20, customers: map[string]Level{}}
	for i := range n {
		name := fmt.Sprint("customer-", i)
		calls = append(calls, spillway.Call{Customer: name})
		c.Limits.Customers[name] = quota.Limit{Rate: 1e9}
		l.customers[name] = Level{Rate: 500, Marginal: 2, Share: 500}
	}
	f := must(t, c)
	f.cfg.Hold, f.cfg.Grace, f.cfg.Interval = time.Hour, 2*time.Hour, 20*time.Minute
	f.take(t0, l)
	alone, err := quota.NewLocal(quota.LocalConfig{Customers: c.Limits.Customers, Interval: f.cfg.lease})
	if err != nil {
		t.Fatal(err)
	}
	global, err = quota.New(quota.Config{Allocator: f})
	if err != nil {
		t.Fatal(err)
	}
	local, err = quota.New(quota.Config{Allocator: alone})
	if err != nil {
		t.Fatal(err)
	}
	return global, local, calls
}

// decide makes n decisions, a microsecond apart, of calls that come in turn.
func decide(q *quota.Quota, calls []spillway.Call, now time.Time, n int) time.Time {
	for i := range n {
		now = now.Add(time.Microsecond)
		if ticket, err := q.Admit(now, calls[i%len(calls)]); err == nil {
			ticket.Settle(now, spillway.OutcomeServed)
		}
	}
	return now
}

func TestDecisionsDoNotAllocate(t *testing.T) {
	race.SkipOneGoroutine(t)
	global, _, calls := gates(t, 100)
	now := decide(global, calls, t0, 1000)
	if n := testing.AllocsPerRun(100, func() { now = decide(global, calls, now, 10_000) }); n > 0 {
		t.Errorf("10,000 decisions and their leases allocate %v times", n)
	}
}

func BenchmarkDecision(b *testing.B) {
	for _, n := range []int{1, 1000} {
		global, local, calls := gates(b, n)
		for name, q := range map[string]*quota.Quota{"fleet": global, "local": local} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				b.ReportAllocs()
				decide(q, calls, t0.Add(time.Minute), b.N)
			})
		}
	}
}

// BenchmarkLeader is one round of a leader of 20 tasks and 1000 customers.
func BenchmarkLeader(b *testing.B) {
	c := Config{Limits: quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 10}}}
	table, err := NewTable(c, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for seq := uint64(1); b.Loop(); seq++ {
		b.StopTimer()
		now := time.Duration(seq) * 200 * ms
		reports := make([]Stamped, 20)
		for k := range reports {
			m := newReport(report{incarnation: 1, seq: seq})
			for i := range 1000 {
				m = appendUsage(m, &usage{name: fmt.Sprint("customer-", i), age: seq - 1, used: float64(seq), wants: [4]float64{2: float64(i%3) / 2}})
			}
			reports[k] = Stamped{Task: fmt.Sprint("task-", k), At: now, Report: m}
		}
		b.StartTimer()
		l, _ := table.Levels(now, reports)
		_ = encodeLevels(l)
	}
}
