package quota

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// TestManySeldomCustomers: each unlisted customer comes more seldom than its bucket fills, and
// all together use no more than UnlistedTotal. Listed customers do not notice.
func TestManySeldomCustomers(t *testing.T) {
	for _, names := range []int{5, 20, 150, 900, 5000} {
		q := must(t, Config{Allocator: mustLocal(t, LocalConfig{
			Customers: map[string]Limit{"acme": {Rate: 10}}, DefaultLimit: Limit{Rate: 5}, UnlistedTotal: Limit{Rate: 5},
		})})
		admitted, listed := 0, 0
		for i := range 40 * 60 { // 40 calls per second for a minute
			now := t0.Add(time.Duration(i) * 25 * ms)
			if _, err := q.Admit(now, callOf(fmt.Sprint("name ", i%names), critical)); err == nil {
				admitted++
			}
			if i%4 == 0 {
				if _, err := q.Admit(now, callOf("acme", critical)); err == nil {
					listed++
				}
			}
		}
		t.Logf("%d names: %.2f per second", names, float64(admitted)/60)
		if admitted < 5*60*95/100 || admitted > 5*61+1 {
			t.Errorf("%d names: %d calls in a minute, want 5 per second", names, admitted)
		}
		if listed != 600 {
			t.Errorf("%d names: %d calls of the listed customer, want all 600", names, listed)
		}
	}
}

// TestUnlistedTotalIsShared: a customer that floods leaves the others of UnlistedTotal their calls.
func TestUnlistedTotalIsShared(t *testing.T) {
	q := must(t, Config{Allocator: mustLocal(t, LocalConfig{UnlistedTotal: Limit{Rate: 20}})})
	admitted := map[string]int{}
	for i := range 100 * 60 {
		now := t0.Add(time.Duration(i) * 10 * ms)
		names := []string{"flood"}
		if i%25 == 0 {
			names = []string{"a", "flood", "b"}
		}
		for _, name := range names {
			if _, err := q.Admit(now, callOf(name, critical)); err == nil {
				admitted[name]++
			}
		}
	}
	t.Log(admitted)
	if admitted["a"] < 228 || admitted["b"] < 228 { // of 240
		t.Errorf("the others have %d and %d of 240 calls", admitted["a"], admitted["b"])
	}
	if sum := admitted["a"] + admitted["b"] + admitted["flood"]; sum < 20*60*95/100 || sum > 20*61+1 {
		t.Errorf("%d calls in a minute, want 20 per second", sum)
	}
}

// TestUnlistedTotalCounts: what is given back is given back to all, measured costs count, and
// a rejection by the total charges nothing.
func TestUnlistedTotalCounts(t *testing.T) {
	q := must(t, Config{Allocator: mustLocal(t, LocalConfig{UnlistedTotal: Limit{Rate: 10}})})
	for i := range 200 {
		ticket, err := q.Admit(t0, callOf(fmt.Sprint("a", i), critical))
		if err != nil {
			t.Fatalf("call %d, though all before did not start: %v", i, err)
		}
		ticket.Settle(t0, spillway.OutcomeNotStarted)
	}
	ticket, err := q.Admit(t0, callOf("b", critical))
	if err != nil {
		t.Fatal(err)
	}
	q.Charge(t0, &ticket, 50) // 5 s of all
	for i := range 5 {
		if _, err := q.Admit(t0.Add(time.Second), callOf(fmt.Sprint("c", i), critical)); err == nil {
			t.Errorf("call %d is admitted, though all unlisted customers are over their total", i)
		}
	}
	if s := statsOf(t, q, time.Second, "c0"); s.Debt != 0 || s.Classes[spillway.Critical.Index()].RejectedTotal != 1 {
		t.Errorf("a rejection by the total: %+v", s)
	}
	if _, err := q.Admit(t0.Add(6*time.Second), callOf("c0", critical)); err != nil {
		t.Errorf("after the time of the cost: %v", err)
	}
	q.ChargeCustomer(t0.Add(6*time.Second), "d", 100)
	if err := q.Reject(t0.Add(7*time.Second), callOf("e", critical)); err == nil {
		t.Error("a charge of a customer does not count in the total")
	}
}

// TestEstablishedGoFirst: a customer that was served before has its calls, however many names come once, also in a
// Quota with few buckets; all together use no more than UnlistedTotal.
func TestEstablishedGoFirst(t *testing.T) {
	q := must(t, Config{MaxUnlisted: 4, Allocator: mustLocal(t, LocalConfig{DefaultLimit: Limit{Rate: 10}, UnlistedTotal: Limit{Rate: 10}})})
	served, others, name := 0, 0, 0
	for i := range 60 * 100 {
		now := t0.Add(time.Duration(i) * 10 * ms)
		if i%25 == 0 { // 4 per second
			if _, err := q.Admit(now, callOf("established", critical)); err == nil {
				served++
			}
		}
		if i < 1000 {
			continue
		}
		for range 10 {
			name++
			if ticket, err := q.Admit(now, callOf(fmt.Sprint("name ", name), critical)); err == nil {
				others++
				q.Charge(now, &ticket, 4) // more than was known
			}
		}
	}
	if served != 60*4 {
		t.Errorf("%d of %d calls of the established customer are admitted", served, 60*4)
	}
	if use := float64(others*5)/50 + 4; use < 9 || use > 11 {
		t.Errorf("all use %.1f per second, want 10", use)
	}
}

// generous grants each customer a high rate, and all unlisted ones 10 per second.
type generous struct{ *Local }

func (generous) Lease(now time.Time, _ Demand) Grant {
	return Grant{Rate: 1000, Until: now.Add(time.Second)}
}

// TestEstablishedKeepTheTotal: established customers are bounded by UnlistedTotal, too, whatever else bounds them.
func TestEstablishedKeepTheTotal(t *testing.T) {
	q := must(t, Config{Allocator: generous{mustLocal(t, LocalConfig{UnlistedTotal: Limit{Rate: 10}})}})
	admitted := 0
	for i := range 60 * 100 {
		if _, err := q.Admit(t0.Add(time.Duration(i)*10*ms), callOf(fmt.Sprint("name ", i%5), critical)); err == nil {
			admitted++
		}
	}
	if admitted < 10*60*95/100 || admitted > 10*61+5 {
		t.Errorf("%d calls in a minute, want 10 per second", admitted)
	}
}
