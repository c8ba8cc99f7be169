package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// long skips a test that takes long with the race detector: simulations run on one goroutine,
// where it finds nothing.
func long(t *testing.T) {
	if testing.Short() {
		t.Skip("a long simulation")
	}
}

// near reports an error unless got is want, give or take a share of it.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if t.Logf("%s is %.4g, theory says %.4g", what, got, want); math.Abs(got-want) > share*want {
		t.Errorf("%s is %.4g, want %.4g ± %.0f%%", what, got, want, 100*share)
	}
}

// erlangB returns the share of calls that find c servers busy at the offered load a.
func erlangB(c int, a float64) float64 {
	b := 1.0
	for i := 1; i <= c; i++ {
		b = a * b / (float64(i) + a*b)
	}
	return b
}

// erlangC returns the share of calls that wait for one of c servers.
func erlangC(c int, a float64) float64 {
	b := erlangB(c, a)
	return b / (1 - a/float64(c)*(1-b))
}

// queue is a scenario of 400,000 requests to one queue, of 20 ms on average.
func queue(slots int, load float64, service distribution) *Scenario {
	perSecond := load * float64(slots) / 0.02
	return &Scenario{End: Time(400_000 / perSecond * float64(sec)), Fill: func(p *Process) {
		p.poisson(flat(perSecond), request(newPool(slots), 0, service, 0))
	}}
}

// The mean time in an M/M/c queue is that of Erlang's formula C.
func TestErlangC(t *testing.T) {
	long(t)
	for _, x := range []struct {
		slots int
		load  float64
	}{{1, 0.5}, {1, 0.8}, {2, 0.7}, {8, 0.9}, {32, 0.9}} {
		r := simulate(queue(x.slots, x.load, exponential(20*ms)), 1, newNone)
		c := float64(x.slots)
		want := 20 + 20*erlangC(x.slots, x.load*c)/(c*(1-x.load))
		near(t, "mean time in ms", r.latency.mean(), want, 0.03)
	}
}

// With constant times the wait is half of that with exponential ones (Pollaczek and Khinchine).
func TestPollaczekKhinchine(t *testing.T) {
	long(t)
	const load = 0.8
	r := simulate(queue(1, load, constant(20*ms)), 1, newNone)
	near(t, "mean time in ms", r.latency.mean(), 20+20*load/(2*(1-load)), 0.02)
}

// Random order keeps the mean wait and spreads the waits.
func TestRandomOrder(t *testing.T) {
	long(t)
	sc := queue(2, 0.9, exponential(20*ms))
	fifo := simulate(sc, 1, newNone)
	sc.Fill = func(p *Process) {
		b := newPool(2)
		b.random = p.random()
		p.poisson(flat(90), request(b, 0, exponential(20*ms), 0))
	}
	random := simulate(sc, 1, newNone)
	near(t, "mean time in ms", random.latency.mean(), 20/(1-0.81), 0.05)
	if fifo, random := fifo.latency.quantile(0.99), random.latency.quantile(0.99); random < 1.2*fifo {
		t.Errorf("p99 is %.0f ms in random order and %.0f ms in order", random, fifo)
	}
}

// The quantiles of the time in an M/M/1 queue are exponential.
func TestQuantiles(t *testing.T) {
	long(t)
	r := simulate(queue(1, 0.5, exponential(20*ms)), 1, newNone)
	for _, q := range []float64{0.5, 0.9, 0.99} {
		near(t, "a quantile in ms", r.latency.quantile(q), -40*math.Log(1-q), 0.03)
	}
}

// With a static limit equal to the slots, Erlang's formula B is the rejected share
// for every distribution of times.
func TestErlangB(t *testing.T) {
	long(t)
	for _, service := range []distribution{exponential(20 * ms), constant(20 * ms), lognormal(20*ms, 1), bimodal(20*ms, 10)} {
		sc := queue(8, 1.25, service)
		r := simulate(sc, 1, newStatic(8))
		near(t, "share rejected", float64(r.Rejected)/float64(r.Offered), erlangB(8, 10), 0.02)
	}
}

// An integral counts requests in flight over time.
type integral struct {
	none
	inFlight int
	since    Time
	area     float64
}

func (a *integral) change(by int) {
	a.area += float64(a.inFlight) * (a.p.Now() - a.since).Seconds()
	a.inFlight, a.since = a.inFlight+by, a.p.Now()
}

func (a *integral) Arrive(r *Request)     { a.change(+1); a.p.Run(r) }
func (a *integral) Finish(*Request, bool) { a.change(-1) }

// Little's law holds for every load: the integral of requests in flight is the sum
// of their times.
func TestLittle(t *testing.T) {
	long(t)
	fills := map[string]func(p *Process){
		"sine": func(p *Process) {
			p.poisson(func(t Time) float64 { return 300 + 200*math.Sin(t.Seconds()) }, query(newPool(8)))
		},
		"short of CPU": func(p *Process) {
			p.starved = []span{{0, 900 * sec}}
			p.poisson(flat(20), query(newPool(8)))
		},
		"loops": func(p *Process) {
			for range 20 {
				p.loop(exponential(100*ms), query(newPool(1)))
			}
		},
	}
	for name, fill := range fills {
		var a *integral
		r := simulate(&Scenario{End: 1000 * sec, Fill: fill}, 1, func(p *Process) Algorithm {
			a = &integral{none: none{p}}
			return a
		})
		if a.inFlight != 0 {
			t.Fatalf("%s: %d left in flight", name, a.inFlight)
		}
		near(t, name+": area in flight", a.area, r.latency.sum, 1e-6)
	}
}

// Arrivals follow their rate: their number and its variance are the integral of the rate.
func TestPoisson(t *testing.T) {
	long(t)
	const runs, want = 400, 1500.0
	var sum, squares float64
	for seed := range uint64(runs) {
		r := simulate(&Scenario{End: 20 * sec, Fill: func(p *Process) {
			p.poisson(func(t Time) float64 { return 7.5 * t.Seconds() }, request(noQueue(), 0, constant(ms), sec))
		}}, seed, newNone)
		sum += float64(r.Offered)
		squares += (float64(r.Offered) - want) * (float64(r.Offered) - want)
	}
	near(t, "mean of arrivals", sum/runs, want, 0.01)
	near(t, "variance of arrivals", squares/runs, want, 0.25)
}

// The mean time of processor sharing depends only on the mean service time.
func TestProcessorSharing(t *testing.T) {
	long(t)
	const load = 0.7
	for _, service := range []distribution{exponential(20 * ms), constant(20 * ms), bimodal(20*ms, 20)} {
		r := simulate(&Scenario{End: 8000 * sec, Fill: func(p *Process) {
			p.poisson(flat(load/0.02), request(newSharing(1), 0, service, 0))
		}}, 1, newNone)
		near(t, "mean time in ms", r.latency.mean(), 20/(1-load), 0.03)
	}
}

// Distributions have the mean that they say.
func TestDistributions(t *testing.T) {
	long(t)
	const n = 2_000_000
	for name, d := range map[string]distribution{
		"constant": constant(sec), "exponential": exponential(sec), "lognormal": lognormal(sec, 1),
		"pareto": pareto(sec, 2.5), "around": around(sec, 0.5), "bimodal": bimodal(sec, 10),
	} {
		rng, sum := rand.New(rand.NewPCG(1, 2)), 0.0
		for range n {
			sum += d(rng).Seconds()
		}
		near(t, "mean of "+name, sum/n, 1, 0.01)
	}
}
