package requests

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// neighbors are two customers of a process with a virtual clock: an honest one that uses 27 % of
// its limit with 40 calls of 1 ms per second, and one that sends 20 calls of 60 ms per second,
// eight times its limit.
type neighbors struct {
	core     *Core
	now      time.Time
	random   *rand.Rand
	used     time.Duration
	measures bool // the process can measure a call
	flights  []flight
	name     func() string // of the expensive customer

	sent, served int     // of the honest one
	spent        float64 // milliseconds of the expensive one, per second of admission
}

type flight struct {
	*Admission

	ends time.Time
	took time.Duration
}

// neighborLimit is the limit of each customer, in milliseconds per second.
const neighborLimit = 148

func newNeighbors(t *testing.T, limits quota.LocalConfig, measures, byRoute bool) *neighbors {
	t.Helper()
	x := &neighbors{random: rand.New(rand.NewPCG(3, 4)), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), measures: measures}
	x.name = func() string { return "expensive" }
	local, err := quota.NewLocal(limits)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Quota: quota.Config{Allocator: local}}
	if byRoute {
		c.CostKey = func(c spillway.Call) string { return c.Key }
	}
	c.Costs, err = cost.New(cost.Config{CPU: func() (time.Duration, error) { return x.used, nil }})
	if err != nil {
		t.Fatal(err)
	}
	x.core, err = New(c, Shell{State: func(time.Time) shed.State { return shed.State{Processors: 4} }})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// run offers the load for some seconds, and returns which part of the honest calls was served,
// and what the expensive customer has used per second.
func (x *neighbors) run(seconds int, expensive float64) (honest, spent float64) {
	x.sent, x.served, x.spent = 0, 0, 0
	total := 40 + expensive
	for end := x.now.Add(time.Duration(seconds) * time.Second); x.now.Before(end); {
		x.now = x.now.Add(time.Duration(x.random.ExpFloat64() * float64(time.Second) / total))
		x.land()
		if x.random.Float64()*total >= 40 {
			if x.call(x.name(), 60*time.Millisecond) {
				x.spent += 60
			}
			continue
		}
		x.sent++
		if x.call("honest", time.Millisecond) {
			x.served++
		}
	}
	return float64(x.served) / float64(x.sent), x.spent / float64(seconds)
}

func (x *neighbors) call(customer string, took time.Duration) bool {
	a := new(Admission)
	if s := x.core.Enter(a, x.now, &spillway.Call{Customer: customer, Key: "/"}, &ratelimit.Caller{}); s.Verdict != shed.Run {
		a.Rejection(s.Err)
		return false
	}
	x.flights = append(x.flights, flight{a, x.now.Add(took), took})
	return true
}

// land ends the calls that have run.
func (x *neighbors) land() {
	kept := x.flights[:0]
	for _, f := range x.flights {
		if f.ends.After(x.now) {
			kept = append(kept, f)
			continue
		}
		x.used += f.took
		if x.measures {
			f.Used(f.ends, f.took)
		}
		f.Done(f.ends, spillway.OutcomeServed)
	}
	x.flights = kept
}

// A customer pays for its own calls only, whether it is listed or not and whatever others call
// themselves; who is expensive is held to its limit within two seconds.
func TestStrangers(t *testing.T) {
	limit := quota.Limit{Rate: neighborLimit}
	listed := map[string]quota.Limit{"honest": limit, "expensive": limit}
	unlisted, total := quota.LocalConfig{DefaultLimit: limit}, quota.LocalConfig{DefaultLimit: limit, UnlistedTotal: quota.Limit{Rate: 300}}
	invented := 0
	const all = 1300 // is what the expensive customer offers
	for name, row := range map[string]struct {
		limits                     quota.LocalConfig
		measures, byRoute, invents bool
		max                        float64 // of the use of the expensive customer, per second
	}{
		"both listed":                 {limits: quota.LocalConfig{Customers: listed}, measures: true, max: neighborLimit},
		"both unlisted":               {limits: unlisted, measures: true, max: neighborLimit},
		"honest listed":               {limits: quota.LocalConfig{Customers: map[string]quota.Limit{"honest": limit}, DefaultLimit: limit}, measures: true, max: neighborLimit},
		"by route":                    {limits: unlisted, measures: true, byRoute: true, max: neighborLimit},
		"invented names":              {limits: unlisted, measures: true, invents: true, max: all},
		"invented names with a total": {limits: total, measures: true, invents: true, max: 300},
		"unlisted, not measurable":    {limits: unlisted, max: all},
	} {
		t.Run(name, func(t *testing.T) {
			x := newNeighbors(t, row.limits, row.measures, row.byRoute)
			if row.invents {
				x.name = func() string { invented++; return fmt.Sprint("name ", invented) }
			}
			x.stays(t, "before", 10, 0)
			_, start := x.run(2, 20) // while its cost is not known
			spent := x.stays(t, "during", 60, 20)
			x.stays(t, "after", 10, 0)
			t.Logf("the expensive customer uses %.0f, then %.0f ms/s", start, spent)
			if spent > 1.1*row.max {
				t.Errorf("the expensive customer uses %.0f ms/s, want %v", spent, row.max)
			}
		})
	}
}

// stays runs the load, and fails the test unless 99 % of the honest calls are served.
func (x *neighbors) stays(t *testing.T, when string, seconds int, expensive float64) (spent float64) {
	t.Helper()
	served, spent := x.run(seconds, expensive)
	if served < 0.99 {
		t.Errorf("%s: %.1f %% of the honest calls are served", when, 100*served)
	}
	return spent
}

// A hundred thousand names change nothing for a customer that was served before, and take no
// memory.
func TestManyNames(t *testing.T) {
	limit := quota.Limit{Rate: neighborLimit}
	x := newNeighbors(t, quota.LocalConfig{DefaultLimit: limit, UnlistedTotal: quota.Limit{Rate: 300}}, true, false)
	invented := 0
	x.name = func() string { invented++; return fmt.Sprint("name ", invented) }
	x.stays(t, "before", 10, 0)
	x.stays(t, "at first", 1, 10000)
	spent := x.stays(t, "during", 10, 10000)
	x.stays(t, "after", 10, 0)
	if invented < 1e5 || spent > 330 {
		t.Errorf("%d names use %.0f ms/s, want 300", invented, spent)
	}
	if n := len(x.core.settings.Load().config.Costs.Stats(time.Now()).Keys); n > 3 {
		t.Errorf("%d costs are known of names that came once", n)
	}
}
