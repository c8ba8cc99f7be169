package ingress

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// What a request is found to cost is charged to its customer, at the gate that observes too,
// once, and nothing after its end.
func TestChargeOfARequest(t *testing.T) {
	for name, mode := range map[string]spillway.Mode{"enforce": spillway.ModeEnforce, "observe": spillway.ModeObserve} {
		synctest.Test(t, func(t *testing.T) {
			s := must(t, Config{Quota: perCustomer(t, 100), QuotaMode: mode})
			p, r := enter(s, spillway.Call{Customer: "a"})
			if r.Rejected() {
				t.Fatal(r)
			}
			p.Charge(time.Now(), 60)
			p.Charge(time.Now(), -21)
			p.Charge(time.Now(), math.NaN())
			p.Done(spillway.OutcomeServed)
			p.Charge(time.Now(), 1000)
			var debt float64
			for _, c := range s.Stats(time.Now()).Quota {
				if c.Customer == "a" {
					debt = c.Debt
				}
			}
			if math.Abs(debt-0.4) > 1e-9 {
				t.Errorf("%s: the debt is %v of a bucket of 100, want 0.4", name, debt)
			}
		})
	}
	var none Slot
	none.Charge(time.Now(), 5) // of an exempt request
	p, _ := enter(must(t, Config{}), spillway.Call{})
	p.Charge(time.Now(), 5) // there is no quota
	p.Done(spillway.OutcomeServed)
}

func TestChargeDoesNotAllocate(t *testing.T) {
	s := must(t, Config{Quota: perCustomer(t, 1e9)})
	p, _ := enter(s, spillway.Call{Customer: "a"})
	defer p.Done(spillway.OutcomeServed)
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() { p.Charge(now, 1) }); n > 0 {
		t.Errorf("Charge allocates %v times", n)
	}
}
