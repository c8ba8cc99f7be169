package quota

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// recorder grants one Grant and keeps what it was asked.
type recorder struct {
	grant   Grant
	demands []Demand
}

func (r *recorder) Known(string) bool { return true }
func (r *recorder) Lease(now time.Time, d Demand) Grant {
	r.demands = append(r.demands, d)
	r.grant.Until = now.Add(100 * ms)
	return r.grant
}

// Demand counts by class what was offered, and what of it was used: admitted calls,
// charges, and less what is given back.
func TestDemandByClassAndUse(t *testing.T) {
	r := &recorder{grant: Grant{Rate: 4}}
	q := must(t, Config{Allocator: r})
	at := t0.Add
	for range 3 {
		admit(q, 0, "c", sheddable) // one of three is admitted
	}
	charged, _ := q.Admit(at(0), callOf("c", criticalPlus))
	q.Charge(at(0), &charged, 0.5)
	charged.Settle(at(0), spillway.OutcomeServed)
	back, _ := q.Admit(at(0), callOf("c", criticalPlus))
	back.Settle(at(0), spillway.OutcomeNotStarted)
	q.ChargeCustomer(at(0), "c", 0.25)
	admit(q, 0, "c", critical)
	admit(q, 100*ms, "c", critical)
	want := Demand{
		Customer: "c", Wants: 67.5, Has: 4, Elapsed: 100 * ms, Used: 3.75,
		Offered: [4]float64{sheddable: 3, critical: 1, criticalPlus: 2.75},
	}
	if len(r.demands) != 2 || r.demands[1] != want {
		t.Fatalf("demands %+v, want %+v last", r.demands, want)
	}
	admit(q, 200*ms, "c", critical)
	if d := r.demands[2]; d.Offered != [4]float64{critical: 1} || d.Used != 0 {
		t.Errorf("the third lease counts again what the second did: %+v", d)
	}
}

// Leases that have no length lose nothing of what is counted.
func TestDemandOfLeasesWithoutLength(t *testing.T) {
	r := &recorder{grant: Grant{Rate: 100}}
	q := must(t, Config{Allocator: always{r}})
	for range 5 {
		admit(q, 0, "c", critical)
	}
	admit(q, ms, "c", critical)
	sum := 0.
	for _, d := range r.demands {
		sum += d.Used
	}
	if sum != 5 {
		t.Errorf("used %v in %d leases, want 5", sum, len(r.demands))
	}
}

// always grants leases that are over at once.
type always struct{ *recorder }

func (a always) Lease(now time.Time, d Demand) Grant {
	g := a.recorder.Lease(now, d)
	g.Until = now
	return g
}

func TestLeastClass(t *testing.T) {
	r := &recorder{grant: Grant{Rate: 100, LeastClass: critical}}
	q := must(t, Config{Allocator: r})
	for class, want := range []bool{false, false, true, true} {
		if admit(q, 0, "c", class) != want {
			t.Errorf("class %d: admitted %v, want %v", class, !want, want)
		}
	}
	// SHEDDABLE_PLUS was rejected until the lease ends, SHEDDABLE is for a quarter more.
	r.grant.LeastClass = sheddable
	for _, row := range []struct {
		at    time.Duration
		class int
		want  bool
	}{
		{99 * ms, sheddablePlus, false},
		{100 * ms, sheddablePlus, true},
		{340 * ms, sheddable, false},
		{350 * ms, sheddable, true},
	} {
		if admit(q, row.at, "c", row.class) != row.want {
			t.Errorf("class %d at %v: admitted %v, want %v", row.class, row.at, !row.want, row.want)
		}
	}
}

func TestLeastDepth(t *testing.T) {
	r := &recorder{grant: Grant{Rate: 0.5, LeastDepth: 4}}
	q := must(t, Config{Allocator: r})
	admitted := 0
	for range 10 {
		if admit(q, 0, "c", criticalPlus) {
			admitted++
		}
	}
	if admitted != 4 {
		t.Errorf("a bucket of 4 admitted %d", admitted)
	}
	// The bucket is as full at the new rate as it was at the old one.
	r.grant.Rate = 100
	admit(q, 100*ms, "c", criticalPlus)
	if s := statsOf(t, q, 100*ms, "c"); s.Debt < 0.997 || s.Debt > 0.998 {
		t.Errorf("a call was added to a debt of 0.9875; it is %v of the bucket at the new rate", s.Debt)
	}
	r.grant.Rate = 0.5
	admit(q, 200*ms, "c", criticalPlus)
	if s := statsOf(t, q, 200*ms, "c"); s.Debt < 1.147 || s.Debt > 1.148 {
		t.Errorf("back at the low rate the debt is %v of the bucket, want 1.1475", s.Debt)
	}
	// From the end of a lease on, time pays at the rate of the next one.
	r.grant.Rate = 1
	admit(q, 2300*ms, "c", criticalPlus)
	if s := statsOf(t, q, 2300*ms, "c"); s.Debt < 0.884 || s.Debt > 0.886 {
		t.Errorf("2 s at 1/s leave %v of the bucket, want 0.885", s.Debt)
	}
}

// What is not above zero, or not a number, leaves the depth to BurstSeconds.
func TestLeastDepthOfNothing(t *testing.T) {
	for _, depth := range []float64{0, -5, math.NaN()} {
		q := must(t, Config{Allocator: fixed{Rate: 2, LeastDepth: depth}})
		admitted := 0
		for range 10 {
			if admit(q, 0, "c", criticalPlus) {
				admitted++
			}
		}
		if admitted != 2 {
			t.Errorf("LeastDepth %v: %d admitted, want 2", depth, admitted)
		}
	}
}

// The demand of rejected calls is what calls before them were charged on average.
func TestDemandOfRejectedCalls(t *testing.T) {
	r := &recorder{grant: Grant{Rate: 100}}
	q := must(t, Config{Allocator: r})
	for second := range 3 {
		now := t0.Add(time.Duration(second) * time.Second)
		for range 10 {
			if ticket, err := q.Admit(now, callOf("c", critical)); err == nil {
				q.Charge(now, &ticket, 49)
			}
		}
		if q.Reject(now, callOf("c", critical)) == nil {
			t.Fatal("want a rejection")
		}
	}
	if got := r.demands[1].Wants; got != 2*50+9 {
		t.Errorf("2 of 11 calls are admitted and cost 50 each: a demand of %v", got)
	}
	if got := r.demands[2].Wants; got != 11*50 {
		t.Errorf("11 calls of 50 each are a demand of %v", got)
	}
}
