package upstream

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/cost"
)

// A payer is a customer whose calls take some processor time, which may change.
type payer struct {
	name string
	rate func(at time.Duration) float64 // calls per second
	cost func(at time.Duration) float64 // seconds

	unlisted bool
}

// costsOf has customers call two endpoints by this proxy for some minutes of virtual time, and returns what
// was learned. others is how many times as many calls of the same kind come by other proxies. change changes reports.
func costsOf(t *testing.T, payers []payer, minutes int, others float64, change func(i int, r *message.LoadReport) bool) map[string]cost.KeyStats {
	t.Helper()
	e := newEndpoints(&config.Cluster{Endpoints: []string{"a:1", "b:1"}}, nil)
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	now := start
	learn := config.LearnCosts{}
	x, err := learn.Estimator(func() (time.Duration, error) { return e.work.total(now, e.all) })
	if err != nil {
		t.Fatal(err)
	}
	var busy, calls [2]float64 // since the last report
	const tick = 50 * time.Millisecond
	for ; now.Sub(start) < time.Duration(minutes)*time.Minute; now = now.Add(tick) {
		at := now.Sub(start)
		for _, p := range payers {
			for range poisson(random, p.rate(at)*tick.Seconds()) {
				i := random.IntN(2)
				e.all[i].total.Add(1)
				busy[i] += p.cost(at) * random.ExpFloat64()
				calls[i]++
				ticket, _, _ := x.Begin(now, cost.Call{Customer: p.name, Known: !p.unlisted})
				x.Done(now.Add(20*time.Millisecond), ticket)
			}
			elsewhere := float64(poisson(random, others*p.rate(at)*tick.Seconds()))
			i := random.IntN(2)
			busy[i] += p.cost(at) * elsewhere
			calls[i] += elsewhere
		}
		if at%time.Second != 0 {
			continue
		}
		for i := range e.all {
			r := message.LoadReport{CPU: busy[i], RPS: calls[i]}
			if change == nil || change(i, &r) {
				e.work.report(now, e.all[i], r)
			}
			busy[i], calls[i] = 0, 0
		}
	}
	keys := make(map[string]cost.KeyStats)
	for _, k := range x.Stats(now).Keys {
		keys[k.Key] = k
	}
	return keys
}

func poisson(r *rand.Rand, l float64) (n int) {
	for p := r.Float64(); p > math.Exp(-l); n++ {
		p *= r.Float64()
	}
	return n
}

func always(x float64) func(time.Duration) float64 { return func(time.Duration) float64 { return x } }

// wave is a rate that varies by half over a period.
func wave(x float64, period time.Duration) func(time.Duration) float64 {
	return func(at time.Duration) float64 { return x * (1 + 0.5*math.Sin(2*math.Pi*at.Seconds()/period.Seconds())) }
}

// learnedAs fails the test unless the cost of a customer is used, and near to a value.
func learnedAs(t *testing.T, keys map[string]cost.KeyStats, name string, want float64) {
	t.Helper()
	k := keys[name]
	t.Logf("%s: %v ± %v, want %v", name, k.Cost, k.StandardError, want)
	if !k.Used || k.Cost.Seconds() < 0.7*want || k.Cost.Seconds() > 1.4*want {
		t.Errorf("%s: %v ± %v, used: %v; want %v s", name, k.Cost, k.StandardError, k.Used, want)
	}
}

// TestCostsAreLearnedFromReports: the processor time of endpoints is shared out to customers by their calls. Calls of other
// proxies are left out where endpoints report their number.
func TestCostsAreLearnedFromReports(t *testing.T) {
	honest := []payer{
		{name: "cheap", rate: wave(200, 47*time.Second), cost: always(1e-3)},
		{name: "dear", rate: wave(20, 31*time.Second), cost: always(20e-3)},
	}
	for _, others := range []float64{0, 1, 4} {
		keys := costsOf(t, honest, 5, others, nil)
		learnedAs(t, keys, "cheap", 1e-3)
		learnedAs(t, keys, "dear", 20e-3)
	}
}

// TestCostsOfUnlistedCustomers: who is not listed gets a cost of its own once it has made some calls, and shares none with
// names that come once.
func TestCostsOfUnlistedCustomers(t *testing.T) {
	keys := costsOf(t, []payer{
		{name: "honest", rate: wave(40, 47*time.Second), cost: always(1e-3), unlisted: true},
		{name: "expensive", rate: wave(20, 31*time.Second), cost: always(60e-3), unlisted: true},
		{name: "", rate: wave(10, 13*time.Second), cost: always(30e-3), unlisted: true},
	}, 5, 0, nil)
	learnedAs(t, keys, "expensive", 60e-3)
	if k := keys["honest"]; k.Used && k.Cost > 3*time.Millisecond {
		t.Errorf("calls of 1ms are charged with %v", k.Cost)
	}
	if k := keys[""]; k.Used || k.Calls == 0 {
		t.Errorf("the calls of all others: %+v; want a cost that is not used", k)
	}
}

// TestCostsThatAreHidden: a customer cannot make its calls look cheap.
func TestCostsThatAreHidden(t *testing.T) {
	bystander := payer{name: "bystander", rate: wave(100, 47*time.Second), cost: always(2e-3)}
	for name, row := range map[string]struct {
		hides payer
		want  float64
	}{
		"cheap until it is trusted": {payer{name: "hides", rate: wave(40, 31*time.Second), cost: func(at time.Duration) float64 {
			if at < 2*time.Minute {
				return 0.5e-3
			}
			return 20e-3
		}}, 20e-3},
		"many cheap calls among dear ones": {payer{name: "hides", rate: wave(100, 31*time.Second), cost: func(at time.Duration) float64 {
			if at/(50*time.Millisecond)%10 == 0 {
				return 50e-3
			}
			return 0.5e-3
		}}, 5.45e-3},
		"only when others call": {payer{name: "hides", rate: func(at time.Duration) float64 { return bystander.rate(at) / 5 }, cost: always(20e-3)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			keys := costsOf(t, []payer{row.hides, bystander}, 6, 0, nil)
			if row.want > 0 {
				learnedAs(t, keys, "hides", row.want)
				learnedAs(t, keys, "bystander", 2e-3)
				return
			}
			// The bystander must not pay for both: 6 ms a call.
			if k := keys["bystander"]; k.Used && k.Cost > 5*time.Millisecond {
				t.Errorf("the bystander is charged %v for calls of 2ms", k.Cost)
			}
			if k := keys["hides"]; k.Used && k.Cost < 10*time.Millisecond {
				t.Errorf("calls of 20ms are charged with %v", k.Cost)
			}
		})
	}
}

// TestReportsThatTeachNothing: what endpoints do not report, or cannot mean, is not learned. Half of the reports are not the
// whole either.
func TestReportsThatTeachNothing(t *testing.T) {
	payers := []payer{
		{name: "cheap", rate: wave(200, 47*time.Second), cost: always(1e-3)}, {name: "dear", rate: wave(20, 31*time.Second), cost: always(20e-3)},
	}
	for name, change := range map[string]func(i int, r *message.LoadReport) bool{
		"none":             func(int, *message.LoadReport) bool { return false },
		"of one endpoint":  func(i int, _ *message.LoadReport) bool { return i == 0 },
		"without cpu":      func(_ int, r *message.LoadReport) bool { r.CPU = 0; return true },
		"no number":        func(_ int, r *message.LoadReport) bool { r.CPU = math.NaN(); return true },
		"infinite":         func(_ int, r *message.LoadReport) bool { r.CPU = math.Inf(1); return true },
		"a million times":  func(_ int, r *message.LoadReport) bool { r.CPU *= 1e6; return true },
		"less than no cpu": func(_ int, r *message.LoadReport) bool { r.CPU = -1; return true },
	} {
		t.Run(name, func(t *testing.T) {
			for key, k := range costsOf(t, payers, 3, 0, change) {
				if k.Used {
					t.Errorf("%q has a cost of %v ± %v", key, k.Cost, k.StandardError)
				}
			}
		})
	}
}

// TestEndpointsThatStopReporting: the time that passes until a report is not known, and later reports do not make up for it.
func TestEndpointsThatStopReporting(t *testing.T) {
	e := newEndpoints(&config.Cluster{Endpoints: []string{"a:1"}}, nil)
	x, now := e.all[0], time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	total := func(want time.Duration, known bool) {
		t.Helper()
		if got, err := e.work.total(now, e.all); got != want || (err == nil) != known {
			t.Errorf("%v, %v; want %v, known: %v", got, err, want, known)
		}
	}
	total(0, true) // it has got nothing to do
	x.total.Add(10)
	total(0, false)
	e.work.report(now, x, message.LoadReport{CPU: 0.5})
	now = now.Add(2 * time.Second)
	x.total.Add(10)
	total(0, true) // it has reported lately
	e.work.report(now, x, message.LoadReport{CPU: 0.5})
	total(time.Second, true)
	now = now.Add(config.CostInterval + 1)
	total(time.Second, true) // it has had nothing to do since
	x.total.Add(1)
	total(0, false)
	e.work.report(now, x, message.LoadReport{CPU: 0.5})
	total(time.Second, true)
	now = now.Add(time.Second)
	x.total.Add(5)
	e.work.report(now, x, message.LoadReport{CPU: 0.5, RPS: 20})
	total(time.Second+125*time.Millisecond, true) // a quarter of its requests came from here
}
