package quota

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// claims returns a group of claims; each row is the demand, weight and limit of one.
func claims(capacity float64, rows [][3]float64) *group {
	g := &group{capacity: capacity}
	for i, row := range rows {
		c := g.claim(t0, key{name: fmt.Sprint(i)}, Limit{Weight: row[1], Rate: orNone(row[2])})
		c.wants = row[0]
	}
	return g
}

// rates shares g's capacity, and returns the rates in the order of the rows.
func rates(g *group) []float64 {
	g.fill()
	all := make([]float64, len(g.claims))
	for i := range all {
		all[i] = g.byKey[key{name: fmt.Sprint(i)}].rate
	}
	return all
}

func TestSharing(t *testing.T) {
	inf := math.Inf(1)
	for name, row := range map[string]struct {
		capacity float64
		claims   [][3]float64 // wants, weight, limit
		want     []float64
	}{
		"one has it all":                  {100, [][3]float64{{1000, 1, 0}}, []float64{100}},
		"equal weights":                   {100, [][3]float64{{1000, 1, 0}, {5000, 1, 0}}, []float64{50, 50}},
		"by weight":                       {100, [][3]float64{{1000, 3, 0}, {1000, 1, 0}}, []float64{75, 25}},
		"what one leaves, the others get": {120, [][3]float64{{1000, 1, 0}, {50, 1, 0}, {10, 1, 0}}, []float64{60, 50, 40}},
		"lent by weight":                  {100, [][3]float64{{0, 2, 0}, {1000, 2, 0}, {1000, 1, 0}}, []float64{40, 200. / 3, 100. / 3}},
		"what nobody wants, by weight":    {100, [][3]float64{{10, 1, 0}, {50, 1, 0}}, []float64{50, 70}},
		"a limit leaves more to others":   {100, [][3]float64{{1000, 1, 20}, {1000, 1, 0}}, []float64{20, 80}},
		"limits above the capacity":       {100, [][3]float64{{1000, 1, 400}, {1000, 1, 300}}, []float64{50, 50}},
		"no capacity":                     {inf, [][3]float64{{1000, 1, 400}, {1000, 1, 0}}, []float64{400, inf}},
	} {
		for i, got := range rates(claims(row.capacity, row.claims)) {
			if math.Abs(got-row.want[i]) > 1e-9 {
				t.Errorf("%s: customer %d gets %v, want %v", name, i, got, row.want[i])
			}
		}
	}
}

// What sharing promises, for any customers.
func TestSharingPromises(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 5))
		const capacity = 1000.
		rows := make([][3]float64, 1+r.IntN(30))
		weight := 0.
		for i := range rows {
			rows[i] = [3]float64{r.ExpFloat64() * 100, math.Exp(r.NormFloat64()), 0}
			if r.IntN(3) == 0 {
				rows[i][2] = 1 + r.Float64()*100
			}
			weight += rows[i][1]
		}
		var granted, used, useful float64
		for i, rate := range rates(claims(capacity, rows)) {
			wants, limit := rows[i][0], orNone(rows[i][2])
			fair := min(limit, capacity*rows[i][1]/weight)
			if rate < fair-1e-9 || rate > limit {
				t.Fatalf("seed %d: customer %d gets %v, want %v to %v", seed, i, rate, fair, limit)
			}
			granted += rate
			used += min(rate, wants)
			useful += min(limit, wants)
		}
		if granted > 2*capacity+1e-6 {
			t.Fatalf("seed %d: %v granted of %v", seed, granted, capacity)
		}
		if want := min(capacity, useful); math.Abs(used-want) > 1e-6 {
			t.Fatalf("seed %d: %v used of %v that was wanted and there", seed, used, want)
		}
	}
}

// A customer that is short of capacity gains nothing by asking for more.
func TestAskingForMoreGainsNothing(t *testing.T) {
	honest := rates(claims(100, [][3]float64{{100, 1, 0}, {100, 1, 0}}))
	greedy := rates(claims(100, [][3]float64{{1e6, 1, 0}, {100, 1, 0}}))
	if honest[0] != greedy[0] || honest[1] != greedy[1] {
		t.Errorf("honest %v, greedy %v", honest, greedy)
	}
}

func TestLocalForgets(t *testing.T) {
	l := mustLocal(t, LocalConfig{Capacity: 100, Customers: map[string]Limit{"a": {}, "b": {}}})
	lease := func(at time.Duration, name string, want float64) {
		t.Helper()
		g := l.Lease(t0.Add(at), Demand{Customer: name, Wants: 1000})
		if math.Abs(g.Rate-want) > 1e-9 || !g.Until.Equal(t0.Add(at+100*ms)) {
			t.Errorf("at %v %s gets %+v, want %v for 100ms", at, name, g, want)
		}
	}
	lease(0, "a", 100)
	lease(0, "b", 50)
	lease(100*ms, "a", 50)
	lease(300*ms, "a", 50)
	lease(400*ms, "a", 100) // b did not come for more than three intervals
	lease(501*ms, "unlisted", 50)
	lease(501*ms, "b", 100./3)
	lease(time.Minute, "unlisted", 100)
	lease(2*time.Minute, "a", 100)
	if n := len(l.unlisted.byKey) + len(l.unlisted.claims); n != 0 {
		t.Errorf("%d unlisted customers left after two minutes", n)
	}
}

// Unlisted customers have one weight together, however many names they use.
func TestUnlistedCustomersShareOneWeight(t *testing.T) {
	l := mustLocal(t, LocalConfig{
		Capacity:      100,
		Customers:     map[string]Limit{"known": {Weight: 4}},
		UnlistedTotal: Limit{Weight: 1},
		DefaultLimit:  Limit{Rate: 15},
	})
	lease := func(at time.Duration, name string) float64 {
		return l.Lease(t0.Add(at), Demand{Customer: name, Wants: 1000}).Rate
	}
	if rate := lease(0, "unlisted"); rate != 15 {
		t.Errorf("an unlisted customer alone gets %v, want its limit of 15", rate)
	}
	for round := range 3 {
		at := time.Duration(round) * 100 * ms
		if rate := lease(at, "known"); rate < 80-1e-9 {
			t.Errorf("round %d: among unlisted customers the known customer gets %v, want 80 at least", round, rate)
		}
		sum := 0.
		for i := range 1000 {
			sum += lease(at+1, fmt.Sprint("unlisted ", i))
		}
		if round > 0 && sum > 20+1e-9 {
			t.Errorf("round %d: 1000 unlisted customers get %v together, want 20", round, sum)
		}
	}
}

func TestUpdateOfLocal(t *testing.T) {
	l := mustLocal(t, LocalConfig{Capacity: 100, Customers: map[string]Limit{"a": {Rate: 10}}})
	if err := l.Update(LocalConfig{Capacity: -1}); err == nil || !l.Known("a") {
		t.Errorf("a failed Update: %v, a is known: %v", err, l.Known("a"))
	}
	customers := map[string]Limit{"b": {Rate: 20}}
	if err := l.Update(LocalConfig{Capacity: 100, Customers: customers}); err != nil {
		t.Fatal(err)
	}
	delete(customers, "b")
	if l.Known("a") || !l.Known("b") {
		t.Error("the new customers are not in force, or the caller's map is in use")
	}
	if g := l.Lease(t0, Demand{Customer: "b"}); g.Rate != 20 {
		t.Errorf("b gets %+v, want its new limit", g)
	}
}

func TestLocalConfigOutOfRangeNamesTheField(t *testing.T) {
	for want, c := range map[string]LocalConfig{
		"Capacity is -1, must be 0 or more":                 {Capacity: -1},
		"Capacity is NaN, must":                             {Capacity: math.NaN()},
		"Interval is 1ms, must be 10ms to 1m":               {Interval: ms},
		"Interval is -1s, must":                             {Interval: -time.Second},
		"DefaultLimit.Rate is -1, must be 0 or more":        {DefaultLimit: Limit{Rate: -1}},
		"UnlistedTotal.Weight is NaN, must be 0.001 to 1e6": {UnlistedTotal: Limit{Weight: math.NaN()}},
		`Customers["a"].Weight is -1, must`:                 {Customers: map[string]Limit{"a": {Weight: -1}}},
		`Customers["a"].Shares[1] is 2, must be 0 to 1`:     {Customers: map[string]Limit{"a": {Shares: [4]float64{1, 2}}}},
	} {
		l, err := NewLocal(c)
		if l != nil || err == nil || !strings.HasPrefix(err.Error(), "quota: "+want) {
			t.Errorf("NewLocal(%+v) = %v, %v; want an error with %q", c, l, err, want)
		}
	}
}

// An attacker can invent customer names without end: memory stays bounded, known customers are
// not affected, and a customer in debt is not forgotten.
func TestUnlistedCustomersAreBounded(t *testing.T) {
	const places = 50
	local := mustLocal(t, LocalConfig{Customers: map[string]Limit{"known": {Rate: 100}}, DefaultLimit: Limit{Rate: 10}})
	q := must(t, Config{Allocator: local, MaxUnlisted: places})
	for range 100 {
		admit(q, 0, "debtor", criticalPlus)
	}
	overflow := 0
	for i := range 20_000 {
		at := time.Duration(i) * ms / 40 // half a second
		if !admit(q, at, fmt.Sprint("unlisted ", i), criticalPlus) {
			overflow++
		}
		if i%400 == 0 && !admit(q, at, "known", critical) {
			t.Fatal("the known customer was rejected")
		}
	}
	if n := len(q.customers); n != places+2 || len(q.places) != n || len(q.unlistedAt) != places {
		t.Errorf("%d customers, %d places, %d unlisted customers; want %d at most", n, len(q.places), len(q.unlistedAt), places+2)
	}
	if len(local.unlisted.claims) > 4*places || len(local.unlisted.byKey) != len(local.unlisted.claims) {
		t.Errorf("the allocator remembers %d unlisted customers", len(local.unlisted.claims))
	}
	if overflow < 19_000 {
		t.Errorf("of 20000 unlisted customers %d were rejected, want nearly all", overflow)
	}
	if admit(q, 50*ms, "debtor", sheddable) || statsOf(t, q, 500*ms, "debtor").Debt < 0.4 {
		t.Error("the debtor got away")
	}
	// When all is paid, places are free again, without anybody's history.
	if !admit(q, time.Minute, "newcomer", sheddable) || statsOf(t, q, time.Minute, "newcomer").Classes[sheddable] != (ClassStats{AdmittedTotal: 1}) {
		t.Error("no place for a newcomer a minute later, or one with a history")
	}
}

// An Allocator is asked about at most MaxUnlisted unlisted customers at a time: a customer
// with a lease keeps its bucket, even if there is no other state to keep.
func TestALeaseKeepsThePlace(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: math.Inf(1)}, MaxUnlisted: 1})
	admit(q, 0, "a", critical)
	admit(q, time.Minute, "b", critical)
	if got := q.customers[1].name; got != "a" {
		t.Errorf("during the lease the place belongs to %q, want a", got)
	}
	admit(q, time.Hour, "b", critical)
	if got := q.customers[1].name; got != "b" {
		t.Errorf("when the lease is over the place belongs to %q, want b", got)
	}
}

func TestNoUnlistedCustomers(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: 100}, MaxUnlisted: -1})
	for i := range 200 {
		if got := admit(q, 0, fmt.Sprint("unlisted ", i), criticalPlus); got != (i < 100) {
			t.Fatalf("unlisted %d: admitted is %v", i, got)
		}
	}
	if !admit(q, 0, "known 1", criticalPlus) || len(q.customers) != 2 {
		t.Error("a known customer has no place of its own")
	}
}

func TestLongNamesShare(t *testing.T) {
	q := must(t, Config{Allocator: fixed{Rate: 100}})
	for _, name := range []string{strings.Repeat("x", maxName), strings.Repeat("x", maxName+1), "known" + strings.Repeat("x", 1000)} {
		admit(q, 0, name, critical)
	}
	if n := len(q.customers); n != 3 || len(q.unlistedAt) != 1 {
		t.Errorf("%d customers, %d unlisted customers; want 3 and 1", n, len(q.unlistedAt))
	}
}

// What is known of a call whose customer has lost its place goes to all who have
// none: it is no way to get rid of a cost, and none to earn.
func TestLateWordOfAForgottenCustomer(t *testing.T) {
	q := must(t, Config{Allocator: &briefly{}, MaxUnlisted: 1, Cost: -1})
	paid, err := q.Admit(t0, callOf("a", critical))
	if err != nil {
		t.Fatal(err)
	}
	given := paid
	admit(q, time.Second, "b", critical)
	if s := statsOf(t, q, time.Second, "b"); s.Classes[critical].AdmittedTotal != 1 {
		t.Fatal("b did not get the place of a")
	}
	q.Charge(t0.Add(time.Second), &paid, 50)
	q.Charge(t0.Add(time.Second), &given, -20)
	if a, b := statsOf(t, q, time.Second, "").Debt, statsOf(t, q, time.Second, "b").Debt; b != 0 || a != 0.5 {
		t.Errorf("debt of b is %v, of those without a place %v; want 0 and 0.5", b, a)
	}
}

// briefly is an Allocator that knows no customers and grants 100 for a moment.
type briefly struct{}

func (*briefly) Known(string) bool { return false }
func (*briefly) Lease(now time.Time, _ Demand) Grant {
	return Grant{Rate: 100, Until: now.Add(ms)}
}

// A customer may become known, and later unlisted again.
func TestKnownChanges(t *testing.T) {
	local := mustLocal(t, LocalConfig{})
	q := must(t, Config{Allocator: local, MaxUnlisted: 1})
	for round := range 4 {
		at := time.Duration(round) * time.Second
		if round%2 == 1 {
			_ = local.Update(LocalConfig{Customers: map[string]Limit{"a": {}}})
		} else {
			_ = local.Update(LocalConfig{})
		}
		admit(q, at, "a", critical)
		if s := statsOf(t, q, at, "a"); s.Known != (round%2 == 1) || len(q.unlistedAt) != 1-round%2 {
			t.Errorf("round %d: known is %v, %d unlisted customers", round, s.Known, len(q.unlistedAt))
		}
	}
}

var _ spillway.Settler = (*Quota)(nil)
