package quota

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

const ms = time.Millisecond

var t0 = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

// The classes, by index.
const (
	sheddable = iota
	sheddablePlus
	critical
	criticalPlus
)

// fixed is an Allocator that grants everybody the same for good.
type fixed Grant

func (f fixed) Known(name string) bool { return strings.HasPrefix(name, "known") }
func (f fixed) Lease(now time.Time, _ Demand) Grant {
	f.Until = now.Add(time.Hour)
	return Grant(f)
}

func must(t testing.TB, c Config) *Quota {
	t.Helper()
	q, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func mustLocal(t testing.TB, c LocalConfig) *Local {
	t.Helper()
	l, err := NewLocal(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// admit makes a call of a class and reports whether it was admitted.
func admit(q *Quota, at time.Duration, customer string, class int) bool {
	_, err := q.Admit(t0.Add(at), callOf(customer, class))
	return err == nil
}

func callOf(customer string, class int) spillway.Call {
	return spillway.Call{Customer: customer, Criticality: spillway.Criticality(class) + spillway.Sheddable}
}

// A step is a number of calls of one class at one time; the first ones, up to a number, must
// be admitted.
type step struct {
	at          time.Duration
	class       int
	calls, want int
}

func TestRows(t *testing.T) {
	for name, row := range map[string]struct {
		config Config
		steps  []step
	}{
		"each class has a quarter more than the one below": {
			Config{Allocator: fixed{Rate: 100}},
			[]step{{0, sheddable, 100, 25}, {0, sheddablePlus, 100, 25}, {0, critical, 100, 25}, {0, criticalPlus, 100, 25}},
		},
		"the highest has all of it": {
			Config{Allocator: fixed{Rate: 100}},
			[]step{{0, criticalPlus, 200, 100}, {0, sheddable, 1, 0}, {10 * ms, criticalPlus, 2, 1}},
		},
		"a class is rejected for a quarter longer than the next": {
			Config{Allocator: fixed{Rate: 100}},
			[]step{
				{0, critical, 100, 75}, {1, critical, 1, 1}, {1, critical, 1, 0},
				{250 * ms, sheddablePlus, 1, 0}, {260*ms + 1, sheddablePlus, 1, 1},
				{500 * ms, sheddable, 1, 0}, {521 * ms, sheddable, 1, 1},
			},
		},
		"refills at the rate, up to the burst": {
			Config{Allocator: fixed{Rate: 10}, BurstSeconds: 2},
			[]step{{0, criticalPlus, 30, 20}, {time.Second, criticalPlus, 20, 10}, {time.Hour, criticalPlus, 30, 20}},
		},
		"less than one call per burst": {
			Config{Allocator: fixed{Rate: 0.5}},
			[]step{{0, sheddable, 3, 1}, {1750 * ms, sheddable, 1, 0}, {1751 * ms, sheddable, 1, 1}, {3001 * ms, criticalPlus, 2, 1}},
		},
		"a cost of ten": {
			Config{Allocator: fixed{Rate: 100}, Cost: 10},
			[]step{{0, criticalPlus, 100, 10}, {100 * ms, criticalPlus, 10, 1}},
		},
		"no limit":             {Config{Allocator: fixed{Rate: math.Inf(1)}}, []step{{0, sheddable, 10_000, 10_000}}},
		"the zero grant":       {Config{Allocator: fixed{}}, []step{{0, criticalPlus, 10, 0}}},
		"a grant that is none": {Config{Allocator: fixed{Rate: math.NaN()}}, []step{{0, criticalPlus, 10, 0}}},
		"a share for the lower classes": {
			Config{Allocator: fixed{Rate: 100, Shares: [4]float64{0.1, 0.5}}},
			[]step{
				{0, sheddable, 100, 10}, {100 * ms, sheddable, 100, 1}, // 10 a second of its own
				{time.Hour, sheddablePlus, 100, 50}, {time.Hour, sheddable, 1, 0}, {time.Hour, criticalPlus, 100, 50},
			},
		},
		"lower classes share their share": {
			Config{Allocator: fixed{Rate: 100, Shares: [4]float64{0, 0.1}}},
			[]step{{0, sheddable, 100, 5}, {0, sheddablePlus, 100, 5}, {0, critical, 100, 65}},
		},
		"time that steps back is none": {
			Config{Allocator: fixed{Rate: 100}},
			[]step{{time.Hour, criticalPlus, 100, 100}, {0, criticalPlus, 1, 0}, {time.Hour + 10*ms, criticalPlus, 2, 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := must(t, row.config)
			for i, s := range row.steps {
				admitted := 0
				for n := range s.calls {
					if admit(q, s.at, "c", s.class) {
						if admitted++; admitted != n+1 {
							t.Fatalf("step %d: call %d was admitted after a rejection", i, n)
						}
					}
				}
				if admitted != s.want {
					t.Fatalf("step %d at %v: %d of %d admitted, want %d", i, s.at, admitted, s.calls, s.want)
				}
			}
		})
	}
}

func TestAnInvalidCriticalityIsCritical(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: 100}})
	for i := range 80 {
		ticket, err := q.Admit(t0, spillway.Call{Criticality: 77})
		if (err == nil) != (i < 75) {
			t.Fatalf("call %d: %v", i, err)
		}
		ticket.Settle(t0, spillway.OutcomeServed)
	}
}

func TestCustomersDoNotTouchOneAnother(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: 100}})
	for range 500 {
		admit(q, 0, "a", criticalPlus)
	}
	for i := range 100 {
		if !admit(q, 0, "b", criticalPlus) {
			t.Fatalf("call %d of another customer was rejected", i)
		}
	}
}

func TestRejection(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: 100}})
	for range 100 {
		admit(q, 0, "c", criticalPlus)
	}
	for class, want := range []time.Duration{1024 * ms, 512 * ms, 256 * ms, ms} {
		ticket, err := q.Admit(t0, callOf("c", class))
		r, ok := errors.AsType[*spillway.RejectedError](err)
		if !ok || !errors.Is(err, spillway.ErrRejected) || ticket != (spillway.Ticket{}) {
			t.Fatalf("class %d: %v, %v", class, ticket, err)
		}
		if r.Policy != "quota" || r.Reason != spillway.ReasonQuota || r.Criticality.Index() != class || r.RetryAfter != want {
			t.Errorf("class %d: %+v, want RetryAfter %v", class, r, want)
		}
	}
	_, err := q.Admit(t0, callOf("c", sheddable))
	const text = "spillway: rejected locally by quota at 404 of 100 per second, for about 1.024s more: the customer has used up its quota for SHEDDABLE calls"
	if !strings.HasPrefix(err.Error(), text) {
		t.Errorf("%q does not begin with %q", err, text)
	}
}

// The hint is never too early, nor more than twice the wait.
func TestHint(t *testing.T) {
	for wait := time.Duration(1); wait <= 2*maxDebt; wait = wait*17/16 + 1 {
		if hint := hintOf(wait); hint < wait || hint > max(ms, 2*wait) {
			t.Fatalf("a wait of %v: the hint is %v", wait, hint)
		}
	}
}

func TestNotStartedGivesTheCostBackOnce(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: 100}})
	for o, want := range map[spillway.Outcome]float64{
		spillway.OutcomeServed: 0.1, spillway.OutcomeFailed: 0.1, spillway.OutcomeTimedOut: 0.1, spillway.OutcomeAbandoned: 0.1, spillway.OutcomeOverloaded: 0.1, spillway.OutcomeNotStarted: 0,
	} {
		name := o.String()
		for range 10 {
			ticket, err := q.Admit(t0, callOf(name, critical))
			if err != nil {
				t.Fatal(err)
			}
			ticket.Settle(t0, o)
			ticket.Settle(t0, spillway.OutcomeNotStarted)
		}
		if got := statsOf(t, q, 0, name).Debt; math.Abs(got-want) > 1e-9 {
			t.Errorf("after ten that are %s, debt is %v, want %v", name, got, want)
		}
	}
}

func statsOf(t *testing.T, q *Quota, at time.Duration, name string) CustomerStats {
	t.Helper()
	for _, s := range q.Stats(t0.Add(at)) {
		if s.Customer == name {
			return s
		}
	}
	t.Fatalf("%q has no place", name)
	return CustomerStats{}
}

func TestCharge(t *testing.T) {
	// CPU-seconds: half a second per second, paid when they are known.
	q := must(t, Config{Allocator: fixed{Rate: 0.5}, Cost: -1})
	charge := func(at time.Duration, amount, debt float64) {
		t.Helper()
		ticket, err := q.Admit(t0.Add(at), callOf("c", criticalPlus))
		if err != nil {
			t.Fatal(err)
		}
		q.Charge(t0.Add(at), &ticket, amount)
		ticket.Settle(t0.Add(at), spillway.OutcomeServed)
		q.Charge(t0.Add(at), &ticket, 1000) // settled: too late
		if got := statsOf(t, q, at, "c").Debt; math.Abs(got-debt) > 1e-9 {
			t.Errorf("debt is %v, want %v", got, debt)
		}
	}
	charge(0, 0.25, 0.5)
	charge(0, -0.05, 0.4)
	charge(0, math.NaN(), 0.4)
	charge(0, math.Inf(1), 0.4)
	charge(0, -100, 0)
	charge(0, 1.5, 3)
	if admit(q, 2*time.Second, "c", criticalPlus) {
		t.Error("admitted with the bucket in debt")
	}
	charge(2*time.Second+1, 0, 1-1e-9)
	charge(time.Hour, 1e300, float64(maxDebt/time.Second))
	foreign := spillway.Ticket{By: must(t, Config{Allocator: fixed{}})}
	q.Charge(t0, &foreign, 1)
}

// TestChargeCustomer: the cost of connections counts for all classes of their customer, and
// for no other customer.
func TestChargeCustomer(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: 10}})
	for _, nothing := range []float64{0, -5, math.NaN(), math.Inf(1), math.Inf(-1)} {
		q.ChargeCustomer(t0, "c", nothing)
	}
	q.ChargeCustomer(t0, "c", 9)
	if got := statsOf(t, q, 0, "c").Debt; math.Abs(got-0.9) > 1e-9 {
		t.Errorf("debt is %v after a charge of 9 of 10, want 0.9", got)
	}
	if admit(q, 0, "c", critical) {
		t.Error("a call of CRITICAL is admitted, want the quarter above it left to CRITICAL_PLUS")
	}
	if !admit(q, 0, "c", criticalPlus) || admit(q, 0, "c", criticalPlus) {
		t.Error("want one call of CRITICAL_PLUS admitted")
	}
	if !admit(q, 0, "other", sheddable) {
		t.Error("another customer is rejected")
	}
	if !admit(q, time.Second, "c", critical) {
		t.Error("the debt is not paid after a second")
	}
}

// grants is an Allocator that grants its field, for a tenth of a second.
type grants struct {
	rate    float64
	demands []Demand
}

func (g *grants) Known(string) bool { return true }
func (g *grants) Lease(now time.Time, d Demand) Grant {
	g.demands = append(g.demands, d)
	return Grant{Rate: g.rate, Until: now.Add(100 * ms)}
}

func TestLeases(t *testing.T) {
	g := &grants{rate: 100}
	q := must(t, Config{Allocator: g})
	for range 50 {
		admit(q, 0, "c", criticalPlus)
	}
	admit(q, 99*ms, "c", criticalPlus)
	if len(g.demands) != 1 || g.demands[0] != (Demand{Customer: "c"}) {
		t.Fatalf("the lease was not kept: %+v", g.demands)
	}
	g.rate = 10
	admit(q, 100*ms, "c", criticalPlus)
	want := Demand{Customer: "c", Wants: 510, Has: 100, Offered: [4]float64{criticalPlus: 51}, Used: 51, Elapsed: 100 * ms}
	if len(g.demands) != 2 || g.demands[1] != want {
		t.Fatalf("at the end of the lease: %+v, want %+v", g.demands, want)
	}
	// 50 of 100 used, 10 paid off: the bucket stays as full as it is, and one call takes a tenth now.
	if s := statsOf(t, q, 100*ms, "c"); s.Rate != 10 || math.Abs(s.Debt-0.51) > 1e-9 {
		t.Errorf("after the second lease: %+v", s)
	}
	g.rate = 0
	if admit(q, time.Minute, "c", criticalPlus) {
		t.Error("admitted by a grant of nothing")
	}
	g.rate = 100
	if !admit(q, 2*time.Minute, "c", criticalPlus) {
		t.Error("the grant of nothing is still in force")
	}
}

func TestUpdate(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: 100}})
	for range 50 {
		admit(q, 0, "c", criticalPlus)
	}
	if err := q.Update(Config{Allocator: fixed{}, BurstSeconds: -1}); err == nil {
		t.Fatal("BurstSeconds -1 was accepted")
	}
	if !admit(q, 0, "c", criticalPlus) {
		t.Error("a failed Update changed something")
	}
	if err := q.Update(Config{Allocator: fixed{Rate: 100}, BurstSeconds: 0.5}); err != nil {
		t.Fatal(err)
	}
	if admit(q, 0, "c", criticalPlus) || !admit(q, 20*ms, "c", criticalPlus) {
		t.Error("the shorter burst is not in force, or the debt was not kept")
	}
}

func TestConfigOutOfRangeNamesTheField(t *testing.T) {
	a := fixed{}
	for want, c := range map[string]Config{
		"Allocator is nil, must be set":                   {},
		"BurstSeconds is NaN, must be 0.01 to 3600":       {Allocator: a, BurstSeconds: math.NaN()},
		"BurstSeconds is 0.001, must":                     {Allocator: a, BurstSeconds: 0.001},
		"BurstSeconds is 3601, must":                      {Allocator: a, BurstSeconds: 3601},
		"Cost is NaN, must be at most 1e6":                {Allocator: a, Cost: math.NaN()},
		"Cost is 1e+07, must":                             {Allocator: a, Cost: 1e7},
		"MaxUnlisted is 1000001, must be at most 1000000": {Allocator: a, MaxUnlisted: 1_000_001},
	} {
		q, err := New(c)
		if q != nil || err == nil || !strings.HasPrefix(err.Error(), "quota: "+want) {
			t.Errorf("New(%+v) = %v, %v; want an error with %q", c, q, err, want)
		}
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	local := mustLocal(t, LocalConfig{Capacity: 1000, Customers: map[string]Limit{"a": {}, "b": {}}})
	q := must(t, Config{Allocator: local, MaxUnlisted: 1})
	now := t0
	for _, name := range []string{"a", "b", "unlisted", "too many", ""} {
		admit(q, 0, name, critical)
	}
	call := func(name string, o spillway.Outcome) func() {
		return func() {
			now = now.Add(ms)
			ticket, err := q.Admit(now, callOf(name, critical))
			if err != nil {
				t.Error(err)
			}
			q.Charge(now, &ticket, 0.5)
			ticket.Settle(now, o)
		}
	}
	served := call("a", spillway.OutcomeServed)
	reject := func() { _, _ = q.Admit(now, callOf("b", sheddable)) }
	for name, f := range map[string]func(){
		"served":          served,
		"not started":     call("a", spillway.OutcomeNotStarted),
		"rejected":        reject,
		"a new lease":     func() { now = now.Add(100 * ms); served() },
		"without a place": func() { _, _ = q.Admit(now, callOf("too many", critical)) },
	} {
		for range 1000 {
			reject()
		}
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("a call that is %s allocates %v times", name, n)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	const workers, calls = 8, 1500
	local := mustLocal(t, LocalConfig{Capacity: 1000, Customers: map[string]Limit{"known": {Weight: 5}}})
	q := must(t, Config{Allocator: local, MaxUnlisted: 10})
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range calls {
				now, name := t0.Add(time.Duration(i)*ms), "known"
				if i%2 == 0 {
					name = fmt.Sprint("unlisted ", (i+w)%40)
				}
				ticket, err := q.Admit(now, callOf(name, i%4))
				if err == nil {
					q.Charge(now, &ticket, 0.5)
					ticket.Settle(now, spillway.Outcome(1+i%5))
				}
				if i%300 == w {
					q.Stats(now)
					if err := q.Update(Config{Allocator: local, MaxUnlisted: 10}); err != nil {
						t.Error(err)
					}
					if err := local.Update(LocalConfig{Capacity: 1000, Customers: map[string]Limit{"known": {Weight: 5}}}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	s := statsOf(t, q, time.Second, "known")
	var n uint64
	for _, c := range s.Classes {
		n += c.AdmittedTotal + c.RejectedTotal
	}
	if n != workers*calls/2 || !s.Known {
		t.Errorf("%d calls of the known customer were counted, want %d", n, workers*calls/2)
	}
}
