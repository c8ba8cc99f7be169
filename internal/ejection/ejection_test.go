package ejection_test

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/ejection"
)

func TestEjection(t *testing.T) {
	now := time.Unix(1e9, 0)
	task := fault.Failure{Overload: true, Scope: fault.ScopeTask, HasRetryAfter: true, RetryAfter: time.Second}
	with := func(change func(*fault.Failure)) fault.Failure {
		f := task
		change(&f)
		return f
	}
	for _, row := range []struct {
		name string
		f    fault.Failure
		want time.Duration
	}{
		{"task", task, time.Second},
		{"no hint", with(func(f *fault.Failure) { f.HasRetryAfter = false }), 0},
		{"a hint of nothing", with(func(f *fault.Failure) { f.RetryAfter = 0 }), 0},
		{"a negative hint", with(func(f *fault.Failure) { f.RetryAfter = -1 }), 0},
		{"absurd", with(func(f *fault.Failure) { f.RetryAfter = math.MaxInt64 }), ejection.Max},
		{"service", with(func(f *fault.Failure) { f.Scope = fault.ScopeService }), 0},
		{"customer", with(func(f *fault.Failure) { f.Scope = fault.ScopeCustomer }), 0},
		{"no scope", with(func(f *fault.Failure) { f.Scope = fault.ScopeUnknown }), 0},
	} {
		var e ejection.Ejection
		until, ejected := e.Failed(now, row.f)
		if ejected != (row.want > 0) || ejected && until.Sub(now) != row.want {
			t.Errorf("%s: %v, %v", row.name, until.Sub(now), ejected)
		}
		if e.Active(now) != ejected || row.want > 0 && !e.Active(now.Add(row.want-1)) || e.Active(now.Add(row.want)) {
			t.Errorf("%s: is left out for another time", row.name)
		}
	}
	var e ejection.Ejection
	e.Failed(now, task)
	if e.Active(now.Add(-2 * ejection.Max)) {
		t.Error("left out for longer than Max, as the clock was set back")
	}
}

// TestEjectionGrows: an endpoint that rejects when it has come back is left out for
// longer each time, up to 16 times what it asks, and for no longer than that once it has
// served for the time that it was left out.
func TestEjectionGrows(t *testing.T) {
	task := fault.Failure{Overload: true, Scope: fault.ScopeTask, HasRetryAfter: true, RetryAfter: time.Second}
	now := time.Unix(1e9, 0)
	var e ejection.Ejection
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 16, 16} {
		until, ejected := e.Failed(now, task)
		if !ejected || until.Sub(now) != want*time.Second {
			t.Fatalf("rejection %d: %v, %v, want %v s", i, until.Sub(now), ejected, want)
		}
		if _, again := e.Failed(now.Add(time.Millisecond), task); again {
			t.Fatal("an attempt that was under way counts")
		}
		now = until.Add(10 * time.Millisecond)
	}
	if until, _ := e.Failed(now.Add(16*time.Second), task); until.Sub(now) != 17*time.Second {
		t.Errorf("after it has served: %v", until.Sub(now))
	}
	long := task
	long.RetryAfter = 50 * time.Second
	var hostile ejection.Ejection
	for range 5 {
		until, _ := hostile.Failed(now, long)
		if until.Sub(now) > ejection.Max {
			t.Errorf("left out for %v", until.Sub(now))
		}
		now = until
	}
}
