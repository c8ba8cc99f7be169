package quota

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// The first and the last value of each range are allowed, and the values next to them are not.
func TestConfigAtItsBounds(t *testing.T) {
	a := mustLocal(t, LocalConfig{})
	for _, c := range []Config{{BurstSeconds: 0.01}, {BurstSeconds: 3600}, {Cost: 1e6}, {MaxUnlisted: 1e6}} {
		c.Allocator = a
		must(t, c)
	}
	for _, c := range []Config{{BurstSeconds: 0.0099}, {BurstSeconds: 3601}, {Cost: 1e6 + 1}, {Cost: math.NaN()}, {MaxUnlisted: 1e6 + 1}} {
		c.Allocator = a
		if _, err := New(c); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
	weight := func(w float64) LocalConfig { return LocalConfig{Customers: map[string]Limit{"a": {Weight: w}}} }
	const least = 10 * time.Millisecond
	for _, c := range []LocalConfig{{Interval: least}, {Interval: time.Minute}, weight(0.001), weight(1e6)} {
		mustLocal(t, c)
	}
	for _, c := range []LocalConfig{{Interval: least - 1}, {Interval: time.Minute + 1}, weight(0.0009), weight(1e6 + 1)} {
		if _, err := NewLocal(c); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}

// Debts and marks are scaled with the depth, as times from now.
func TestScaleOfABucket(t *testing.T) {
	b := bucket{full: 10 * time.Second, mark: 20 * time.Second}
	b.scale(5*time.Second, 2)
	if want := (bucket{full: 15 * time.Second, mark: 35 * time.Second}); b != want {
		t.Errorf("%+v, want %+v", b, want)
	}
	b.scale(15*time.Second, 3) // the debt is paid
	if want := (bucket{full: 15 * time.Second, mark: 75 * time.Second}); b != want {
		t.Errorf("%+v, want %+v", b, want)
	}
}

// Without a rate all calls are rejected until the lease ends, and charges leave no debt.
func TestCustomerWithoutARate(t *testing.T) {
	var c customer
	c.lease(4*time.Second, 10*time.Second, time.Second, Grant{LeastDepth: 5})
	if c.deep != 0 {
		t.Errorf("the buckets of no rate are %v deep", c.deep)
	}
	if wait := c.rejectedFor(4*time.Second, time.Second, 0, 0); wait != 6*time.Second {
		t.Errorf("rejected for %v, want for the 6 s of the lease", wait)
	}
	c.charge(4*time.Second, 0, 5)
	for i, b := range c.buckets {
		if b.full > 4*time.Second {
			t.Errorf("bucket %d has a debt until %v", i, b.full)
		}
	}
}

// A call that just fits is admitted, leaves no mark, and its customer is idle when its debts
// are paid.
func TestCallThatJustFits(t *testing.T) {
	c := customer{rate: 1}
	at, burst, last := time.Minute, time.Second, spillway.Criticalities-1
	c.buckets[last].full = at + burst - 1
	for range 2 {
		if wait := c.rejectedFor(at, burst, last, 0); wait != 0 {
			t.Errorf("rejected for %v", wait)
		}
	}
	c.buckets[last].full++
	if wait := c.rejectedFor(at, burst, last, 0); wait != 1 {
		t.Errorf("rejected for %v, want 1 ns", wait)
	}
	c = customer{}
	if c.buckets[last].full = at; !c.idle(at) || c.idle(at-1) {
		t.Error("a customer is idle when its debts are paid, and not before")
	}
}

// The hint of a rejection is the least power of two that is not below the wait.
func TestHintOfARejection(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{
		1: time.Millisecond, time.Millisecond: time.Millisecond, time.Millisecond + 1: 2 * time.Millisecond,
		4 * time.Millisecond: 4 * time.Millisecond, math.MaxInt64: time.Millisecond << 36,
	} {
		if hint := hintOf(wait); hint != want {
			t.Errorf("a wait of %v has the hint %v, want %v", wait, hint, want)
		}
	}
}

// all is an Allocator that knows all customers, and tells none from others.
type all struct{}

func (all) Known(string) bool { return true }
func (all) Lease(now time.Time, _ Demand) Grant {
	return Grant{Rate: 1, Unlisted: true, Until: now.Add(time.Hour)}
}

// Customers that the Allocator does not tell apart share the first bucket, and are one line of
// Stats.
func TestUnlistedCustomersShareABucket(t *testing.T) {
	q := must(t, Config{Allocator: all{}, BurstSeconds: 10})
	admitted := 0
	for i := range 40 {
		if _, err := q.Admit(t0, callOf([]string{"a", "b", "c", "d"}[i%4], spillway.Criticalities-1)); err == nil {
			admitted++
		}
	}
	if admitted != 10 {
		t.Errorf("%d calls of four customers, want the 10 of one bucket", admitted)
	}
	if s := q.Stats(t0); len(s) != 1 || s[0].Customer != "" || s[0].Known {
		t.Errorf("%+v, want one line of customers that are not known apart", s)
	}
}

// A charge of nothing is none: its customer gets no bucket.
func TestChargeOfNothing(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: 1}})
	q.ChargeCustomer(t0, "a", 0)
	for _, s := range q.Stats(t0) {
		if s.Customer == "a" {
			t.Errorf("%+v", s)
		}
	}
}

// Charges whose sum is not finite take nothing from other customers: what is left of no bound is no bound, and not no number.
func TestChargesBeyondAllNumbers(t *testing.T) {
	q := must(t, Config{Allocator: mustLocal(t, LocalConfig{Customers: map[string]Limit{"a": {}, "b": {}}})})
	for i, name := range []string{"a", "b", "unlisted"} {
		if !admit(q, 0, name, critical) {
			t.Fatalf("customer %d is rejected without a limit", i)
		}
	}
	q.ChargeCustomer(t0, "a", math.MaxFloat64)
	q.ChargeCustomer(t0, "a", math.MaxFloat64)
	for at := 100 * ms; at < time.Second; at += 50 * ms {
		for _, name := range []string{"a", "b", "unlisted"} {
			if !admit(q, at, name, critical) {
				t.Fatalf("after %v %q is rejected without a limit", at, name)
			}
		}
	}
}
