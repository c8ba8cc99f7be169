package requests

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A costly is a process with a virtual clock whose calls take the processor time of their customer.
type costly struct {
	core   *Core
	now    time.Time
	random *rand.Rand
	used   time.Duration
	runs   map[string]float64 // processor time by customer, in milliseconds
}

// newCostly returns a process in which each of two customers may use 50 ms per second.
func newCostly(t *testing.T, learn bool, c Config) *costly {
	t.Helper()
	race.SkipOneGoroutine(t)
	x := &costly{random: rand.New(rand.NewPCG(1, 2)), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), runs: map[string]float64{}}
	local, err := quota.NewLocal(quota.LocalConfig{Customers: map[string]quota.Limit{"dear": {Rate: 50}, "cheap": {Rate: 50}}})
	if err != nil {
		t.Fatal(err)
	}
	c.Quota = quota.Config{Allocator: local}
	if learn {
		if c.Costs, err = cost.New(cost.Config{CPU: func() (time.Duration, error) { return x.used, nil }}); err != nil {
			t.Fatal(err)
		}
	}
	x.core, err = New(c, Shell{State: func(time.Time) shed.State { return shed.State{Processors: 2} }})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// call makes a call, and reports whether it was admitted.
func (x *costly) call(customer string, took time.Duration) bool {
	var a Admission
	if s := x.core.Enter(&a, x.now, &spillway.Call{Customer: customer}, &ratelimit.Caller{}); s.Verdict != shed.Run {
		a.Rejection(s.Err)
		x.used += 10 * time.Microsecond
		return false
	}
	x.used += took
	x.runs[customer] += took.Seconds() * 1e3
	a.Done(x.now.Add(took), spillway.OutcomeServed)
	return true
}

// offer offers 100 expensive and 40 cheap calls per second, at random times.
func (x *costly) offer(seconds int) (rejectedCheap int) {
	for end := x.now.Add(time.Duration(seconds) * time.Second); x.now.Before(end); {
		x.now = x.now.Add(time.Duration(x.random.ExpFloat64() * float64(time.Second) / 140))
		if x.random.Float64() < 100./140 {
			x.call("dear", 10*time.Millisecond)
		} else if !x.call("cheap", time.Millisecond) {
			rejectedCheap++
		}
	}
	return rejectedCheap
}

// A customer with few expensive calls is held to its share. Where requests are counted it uses
// 10 times as much.
func TestLearnedCost(t *testing.T) {
	counted, learned := newCostly(t, false, Config{}), newCostly(t, true, Config{})
	for _, x := range []*costly{counted, learned} {
		x.offer(60)
		clear(x.runs)
		if n := x.offer(60); n > 0 {
			t.Errorf("%d cheap calls rejected", n)
		}
	}
	t.Logf("counted %.0f ms/s, learned %.0f ms/s of 50", counted.runs["dear"]/60, learned.runs["dear"]/60)
	if got := counted.runs["dear"] / 60; got < 450 {
		t.Errorf("counting requests, the expensive customer uses %.0f ms/s, want 500: the comparison says nothing", got)
	}
	if got := learned.runs["dear"] / 60; got < 35 || got > 65 {
		t.Errorf("the expensive customer uses %.0f ms/s, want 50", got)
	}
}

// A gate that observes charges what one that enforces does, and changes nothing.
func TestLearnedCostObserved(t *testing.T) {
	x := newCostly(t, true, Config{Modes: Modes{Quota: spillway.ModeObserve}})
	x.offer(30)
	clear(x.runs)
	x.offer(10)
	if got := x.runs["dear"] / 10; got < 950 {
		t.Errorf("%.0f ms/s, want 1000: a gate that observes rejects nothing", got)
	}
	for _, c := range x.core.settings.Load().quota.Stats(x.now) {
		if c.Customer == "dear" && (c.Wants < 700 || c.Wants > 1300) {
			t.Errorf("wants %.0f, want 1000", c.Wants)
		}
	}
}

// What was charged for a request that is not started is given back, at the cost of its admission.
func TestLearnedCostGivenBack(t *testing.T) {
	x := newCostly(t, true, Config{MaxInFlight: 1})
	x.offer(60)
	x.now = x.now.Add(time.Minute)
	var first, second Admission
	if s := x.core.Enter(&first, x.now, &spillway.Call{Customer: "cheap"}, &ratelimit.Caller{}); s.Verdict != shed.Run {
		t.Fatal(s.Err)
	}
	s := x.core.Enter(&second, x.now, &spillway.Call{Customer: "dear"}, &ratelimit.Caller{})
	debt := func() float64 {
		for _, c := range x.core.settings.Load().quota.Stats(x.now) {
			if c.Customer == "dear" {
				return c.Debt
			}
		}
		return math.NaN()
	}
	if s.Verdict != shed.Wait || debt() < 0.1 {
		t.Fatalf("%v with a debt of %v, want a wait and the cost of an expensive call, 0.2", s.Verdict, debt())
	}
	if _, ok := second.Withdraw(x.now, context.Canceled); !ok || debt() != 0 {
		t.Errorf("after the end: withdrawn %v with a debt of %v, want 0", ok, debt())
	}
	first.Done(x.now, spillway.OutcomeServed)
}

// Names that the Allocator does not know share a key.
func TestCostKey(t *testing.T) {
	x := newCostly(t, true, Config{})
	for i := range 100 {
		x.call(string(rune('A'+i)), time.Millisecond)
	}
	if keys := x.core.settings.Load().config.Costs.Stats(time.Now()).Keys; len(keys) != 1 {
		t.Errorf("%v, want the shared key only", keys)
	}
	x = newCostly(t, true, Config{CostKey: func(c spillway.Call) string { return c.Key }})
	x.call("dear", time.Millisecond)
	var a Admission
	x.core.Enter(&a, x.now, &spillway.Call{Key: "route"}, &ratelimit.Caller{})
	a.Done(x.now, spillway.OutcomeServed)
	if keys := x.core.settings.Load().config.Costs.Stats(time.Now()).Keys; len(keys) != 2 || keys[1].Key != "route" {
		t.Errorf("%v, want the key of the call", keys)
	}
}

func TestLearnedCostDoesNotAllocate(t *testing.T) {
	x := newCostly(t, true, Config{})
	x.offer(20)
	var a Admission
	from := ratelimit.Caller{}
	for _, customer := range []string{"cheap", "unlisted"} {
		call := spillway.Call{Customer: customer}
		if n := testing.AllocsPerRun(1000, func() {
			x.now = x.now.Add(25 * time.Millisecond)
			if x.core.Enter(&a, x.now, &call, &from).Verdict == shed.Run {
				a.Used(x.now, time.Millisecond)
				a.Done(x.now, spillway.OutcomeServed)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", customer, n)
		}
	}
}
