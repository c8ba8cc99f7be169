package fleet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway/quota"
)

// told is a report of one task about one customer.
func told(task string, at time.Duration, r report, u ...usage) Stamped {
	b := newReport(r)
	for i := range u {
		b = appendUsage(b, &u[i])
	}
	return Stamped{Task: task, At: at, Report: b}
}

func mustTable(t *testing.T, c Config, prior *Levels) *Table {
	t.Helper()
	table, err := NewTable(c, prior)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// The shares of all tasks add up to what is handed out, whatever the demand.
func TestSharesAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	marginal, quiet := [5]int{}, 0
	for round := range 300 {
		table := mustTable(t, mail(1000), nil)
		n := 1 + r.IntN(30)
		wants := make([][4]float64, n)
		var reports []Stamped
		for i := range n {
			for class := range wants[i] {
				if r.IntN(3) > 0 {
					wants[i][class] = float64(float32(r.ExpFloat64() * 2000 / float64(n) * float64(r.IntN(4)) / 4))
				}
			}
			reports = append(reports, told(fmt.Sprint(i), 0, report{seq: 1}, usage{name: "mail", wants: wants[i]}))
		}
		l, _ := table.Levels(0, reports)
		handed := table.cfg.steered(1000, 0, n)
		least := handed * 0.999999
		level, ok := l.Customer("mail")
		if !ok {
			level, least = table.cfg.quiet(1000, n), 1000
			quiet++
		}
		marginal[level.Marginal+1]++
		sum := 0.
		for i := range wants {
			rate, class := level.grant(&wants[i], n)
			sum += rate
			if rate < floor*1000/float64(n)-1e-9 || class != min(max(level.Marginal, 0), 2) {
				t.Fatalf("round %d: task %d is granted %v from class %d of %+v", round, i, rate, class, level)
			}
		}
		if sum < least || sum > handed+floor*1000 {
			t.Fatalf("round %d: %d tasks are granted %v of %v: %+v", round, n, sum, handed, level)
		}
	}
	for i, n := range marginal {
		if n == 0 {
			t.Errorf("class %d was never marginal", i-1)
		}
	}
	if quiet == 0 || quiet == marginal[0] {
		t.Errorf("%d of %d were quiet, want some", quiet, marginal[0])
	}
}

// A board may lose its reports and nothing else, as a server does that evicts a key. Levels are for all tasks all
// the same: the tasks have not left. Tasks that do not report again count as silent, and then not at all.
func TestReportsAreLost(t *testing.T) {
	const I = 200 * ms
	table := mustTable(t, mail(1000), nil)
	word := func(task int, at time.Duration) Stamped {
		return told(fmt.Sprint(task), at, report{seq: uint64(at/I) + 1}, usage{name: "mail", wants: [4]float64{0, 0, 500, 0}})
	}
	round := func(at, since time.Duration, tasks int) *Levels {
		var all []Stamped
		for task := range tasks {
			all = append(all, word(task, at))
		}
		l, _ := table.levels(at, since, all)
		return l
	}
	var before *Levels
	for i := range time.Duration(5) {
		before = round(i*I, 0, 10)
	}
	lost := round(5*I, 5*I-1, 2)
	share := func(l *Levels) float64 { c, _ := l.Customer("mail"); return c.Share }
	if lost.Tasks != 10 || share(lost) > 1.1*share(before) || share(lost) < 0.9*share(before) {
		t.Errorf("of %d tasks each has %v/s; before the loss it was %d and %v/s", lost.Tasks, share(lost), before.Tasks, share(before))
	}
	for i := range time.Duration(5) {
		before = round((6+i)*I, 5*I-1, 8)
	}
	if left := round(11*I, 5*I-1, 7); before.Tasks != 10 || left.Tasks != 9 {
		t.Errorf("%d tasks count, and %d after one has left; want 10 and 9", before.Tasks, left.Tasks)
	}
	at := 11 * I
	for ; at < 6*I+table.cfg.silence(); at += I {
		before = round(at, 5*I-1, 7)
	}
	if before.Tasks != 7 {
		t.Errorf("%d tasks count after a long silence of two, want 7", before.Tasks)
	}
}

// Use is counted once, whatever is lost, repeated or reset.
func TestUseIsCountedOnce(t *testing.T) {
	const I = 200 * ms
	a := report{incarnation: 1}
	seq := func(r report, n uint64) report { r.seq = n; return r }
	type step struct {
		report Stamped
		used   float64 // debt that this adds
	}
	for name, steps := range map[string][]step{
		"grows": {
			{told("a", I, seq(a, 1), usage{name: "mail", used: 500}), 500},
			{told("a", 2*I, seq(a, 2), usage{name: "mail", age: 1, used: 800}), 300},
		},
		"a report is lost": {
			{told("a", I, seq(a, 1), usage{name: "mail", used: 500}), 500},
			{told("a", 2*I, seq(a, 9), usage{name: "mail", age: 8, used: 900}), 400},
		},
		"the same again": {
			{told("a", I, seq(a, 1), usage{name: "mail", used: 500}), 500},
			{told("a", 2*I, seq(a, 1), usage{name: "mail", used: 500}), 0},
		},
		"an older one, from a board that lost the last writes": {
			{told("a", I, seq(a, 3), usage{name: "mail", age: 2, used: 500}), 0}, // the leader is new
			{told("a", 2*I, seq(a, 2), usage{name: "mail", age: 1, used: 300}), 0},
			{told("a", 3*I, seq(a, 4), usage{name: "mail", age: 3, used: 900}), 400},
		},
		"the task begins anew": {
			{told("a", I, seq(a, 7), usage{name: "mail", used: 500}), 500},
			{told("a", 2*I, report{incarnation: 2, seq: 1}, usage{name: "mail", used: 400}), 400},
			{told("a", 3*I, report{incarnation: 2, seq: 2}, usage{name: "mail", age: 1, used: 700}), 300},
		},
		"the customer was away": {
			{told("a", I, seq(a, 1), usage{name: "mail", used: 500}), 500},
			{told("a", 2*I, seq(a, 2)), 0},
			{told("a", 3*I, seq(a, 3), usage{name: "mail", used: 400}), 400},
		},
		"the customer was away, and the leader did not see it": {
			{told("a", I, seq(a, 1), usage{name: "mail", used: 500}), 500},
			{told("a", 2*I, seq(a, 4), usage{name: "mail", age: 1, used: 400}), 400},
		},
		"named twice": {
			{told("a", I, seq(a, 1), usage{name: "mail", used: 500}, usage{name: "mail", used: 900}), 500},
		},
		"given back": {
			{told("a", I, seq(a, 1), usage{name: "mail", used: 500}), 500},
			{told("a", 2*I, seq(a, 2), usage{name: "mail", age: 1, used: 400}), -100},
		},
	} {
		c := mail(1000)
		c.BurstSeconds = 3600 // no bound is in the way
		table := mustTable(t, c, nil)
		debt, at := 0., time.Duration(0)
		table.Levels(0, nil)
		for i, s := range steps {
			_, _ = table.Levels(s.report.At, []Stamped{s.report})
			debt = max(0, debt+s.used-1000*(s.report.At-at).Seconds())
			at = s.report.At
			got := 0.
			if a := table.customers["mail"]; a != nil {
				got = a.debt
			}
			if math.Abs(got-debt) > 1e-6 {
				t.Errorf("%s: the debt after step %d is %v, want %v", name, i, got, debt)
			}
			debt = got
		}
	}
}

// A leader that is new learns until all tasks that the last one knew have reported, and
// goes on with its debts.
func TestNewLeaderLearns(t *testing.T) {
	const I = 200 * ms
	prior := &Levels{Tasks: 2, customers: map[string]Level{"mail": {Rate: 1000, Debt: 600, Marginal: 2, Share: 500}}}
	table := mustTable(t, mail(1000), prior)
	word := func(task string, at time.Duration, seq uint64) Stamped {
		return told(task, at, report{incarnation: 1, seq: seq}, usage{name: "mail", age: seq - 1, used: 1e6, wants: [4]float64{2: 900}})
	}
	for i := range uint64(5) { // only one of two tasks
		at := time.Duration(i) * I
		if _, ok := table.Levels(at, []Stamped{word("a", at, 50+i)}); ok {
			t.Fatalf("publishes after %v without having heard of the other task", at)
		}
	}
	l, ok := table.Levels(5*I, []Stamped{word("a", 5*I, 55), word("b", 5*I, 99)})
	if !ok {
		t.Fatal("all have reported, and it still learns")
	}
	if level, _ := l.Customer("mail"); math.Abs(level.Debt-400) > 1 { // 600, less one interval
		t.Errorf("the debt is %v, want 400", level.Debt)
	}
	alone := mustTable(t, mail(1000), prior)
	ok = false
	at := time.Duration(0)
	for ; !ok && at < time.Minute; at += I {
		_, ok = alone.Levels(at, []Stamped{word("a", at, 50+uint64(at/I))})
	}
	if at != 2*time.Second+I {
		t.Errorf("waited until %v for a task that does not come back, want Hold, 2s", at-I)
	}
}

// With a capacity, rates are weighted max-min.
func TestRatesAreMaxMin(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		n := 2 + r.IntN(20)
		limits := map[string]quota.Limit{}
		wants := map[string]float64{}
		var usages []usage
		for i := range n {
			name := fmt.Sprint(i)
			limits[name] = quota.Limit{Weight: float64(1 + r.IntN(4))}
			wants[name] = float64(float32(r.ExpFloat64() * 200))
			usages = append(usages, usage{name: name, wants: [4]float64{2: wants[name]}})
		}
		table := mustTable(t, Config{Limits: quota.LocalConfig{Capacity: 1000, Customers: limits}}, nil)
		l, _ := table.Levels(0, []Stamped{told("a", 0, report{seq: 1}, usages...)})
		demand := 0.
		for _, w := range wants {
			demand += w
		}
		type claim struct{ wants, weight float64 }
		claims := map[string]claim{}
		for name, w := range wants {
			claims[name] = claim{w, limits[name].Weight}
		}
		level := maxMin(1000, claims, func(c claim) (float64, float64) { return c.wants, c.weight })
		for name := range limits {
			got, _ := l.Customer(name)
			if demand > 1000 && math.Abs(got.Rate-level*limits[name].Weight) > 1e-3 {
				t.Fatalf("%s of weight %v has %v, want %v", name, limits[name].Weight, got.Rate, level*limits[name].Weight)
			}
			if demand <= 1000 && got.Rate < wants[name] {
				t.Fatalf("%s has %v of %v although all fits", name, got.Rate, wants[name])
			}
		}
	}
}

// Unlisted names are one claim among the customers that are listed.
func TestInventedNamesTakeNothing(t *testing.T) {
	c := Config{Limits: quota.LocalConfig{Capacity: 1000, Customers: map[string]quota.Limit{"mail": {}}}}
	usages := []usage{{name: "mail", wants: [4]float64{2: 5000}}}
	for i := range 500 {
		usages = append(usages, usage{name: fmt.Sprint("x", i), wants: [4]float64{2: 5000}})
	}
	l, _ := mustTable(t, c, nil).Levels(0, []Stamped{told("a", 0, report{seq: 1}, usages...)})
	mail, _ := l.Customer("mail")
	x, _ := l.Customer("x7")
	if math.Abs(mail.Rate-500) > 1e-6 || math.Abs(x.Rate-1) > 1e-6 {
		t.Errorf("mail has %v, an invented name %v; want 500 and 1", mail.Rate, x.Rate)
	}
}
