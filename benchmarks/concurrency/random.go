package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/seed90641741/spillway"
)

// randoms returns n scenarios drawn at random, one for each seed after from.
func randoms(n, from uint64) (list []*Scenario) {
	for i := range n {
		list = append(list, randomScenario(from+i+1))
	}
	return list
}

// A draft is an unfinished random scenario.
type draft struct {
	rng      *rand.Rand
	words    []string // description
	mean     Time     // service time
	service  distribution
	deadline Time
	keys     int
	classes  bool
	leaving  bool
	split    bool    // every other key uses a second backend, without a queue
	slots    int     // of the pool, zero for a backend without a queue
	load     float64 // mean number of requests in service if none had to wait
	end      Time
	faults   []func(p *Process, b *Backend)
}

// randomScenario returns a random scenario. It depends on the seed only.
func randomScenario(seed uint64) *Scenario {
	d := &draft{rng: rand.New(rand.NewPCG(seed, 0x5ca1ab1e))}
	d.drawBackend()
	d.drawService()
	silent := d.drawDeadline()
	d.drawClients()
	arrivals := d.drawArrivals()
	d.drawFaults()
	sc := &Scenario{
		Name: fmt.Sprintf("R%d", seed), About: strings.Join(d.words, ", "),
		Overload: d.slots > 0, End: d.end, Silent: silent,
		Fill: func(p *Process) {
			b := noQueue()
			if d.slots > 0 {
				b = newPool(d.slots)
			}
			for _, f := range d.faults {
				f(p, b)
			}
			arrivals(p, d.request(b))
		},
	}
	if d.slots > 0 {
		sc.Limits = limitsFor(d.slots)
	}
	return sc
}

// limitsFor are the limits that the oracle tries for a pool. Less than all slots is
// never better.
func limitsFor(slots int) (list []int) {
	for _, x := range []float64{1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24} {
		list = append(list, max(1, int(math.Round(x*float64(slots)))))
	}
	return slices.Compact(list)
}

func (d *draft) sayf(format string, args ...any) {
	d.words = append(d.words, fmt.Sprintf(format, args...))
}

// between returns a random number; its logarithm is uniform.
func (d *draft) between(least, most float64) float64 {
	return least * math.Exp(d.rng.Float64()*math.Log(most/least))
}

func (d *draft) chance(p float64) bool { return d.rng.Float64() < p }

// budget is how many requests clients send in a run, at most.
const budget = 200_000

// drawBackend draws a pool of 1 to 500 slots or a backend without a queue, a mean
// service time of 1 ms to 5 s, and the load. A run is long enough to serve 500
// requests, and much longer than a deadline.
func (d *draft) drawBackend() {
	const longest = 120 * sec
	d.mean = Time(d.between(float64(ms), float64(5*sec)))
	seconds := d.mean.Seconds()
	servers := math.Floor(d.between(max(1, 500*seconds/longest.Seconds()), 501))
	d.end = min(longest, max(20*sec, 50*d.mean, Time(500*seconds/servers*float64(sec))))

	load, pool := 1.0, d.chance(0.7)
	if pool {
		load = []float64{0.3, 0.5, 0.7, 0.9, 1.1, 1.5, 2, 3, 5, 10}[d.rng.IntN(10)]
	}
	servers = min(servers, max(1, math.Floor(budget*seconds/d.end.Seconds()/load)))
	d.load = load * servers
	if !pool {
		d.sayf("no queue, %.0f in service", servers)
		return
	}
	d.slots = int(servers)
	d.sayf("pool of %d at %.1fx", d.slots, load)
}

// drawService draws the distribution of service times.
func (d *draft) drawService() {
	mean := d.mean
	switch d.rng.IntN(5) {
	case 0:
		d.service = constant(mean)
		d.sayf("constant %v", mean.Round(ms/10))
	case 1:
		d.service = exponential(mean)
		d.sayf("exponential %v", mean.Round(ms/10))
	case 2:
		sigma := 0.5 + d.rng.Float64()
		d.service = lognormal(mean, sigma)
		d.sayf("lognormal %v σ %.1f", mean.Round(ms/10), sigma)
	case 3:
		alpha := 1.6 + 1.4*d.rng.Float64()
		d.service = pareto(mean, alpha)
		d.sayf("pareto %v α %.1f", mean.Round(ms/10), alpha)
	case 4:
		factor := d.between(5, 50)
		d.service = bimodal(mean, factor)
		d.sayf("bimodal %v, a tenth %.0f times slower", mean.Round(ms/10), factor)
	}
}

// pareto has the given mean and, above 1, the tail index alpha. Times are at most
// 1000 means.
func pareto(mean Time, alpha float64) distribution {
	least := float64(mean) * (alpha - 1) / alpha
	return func(rng *rand.Rand) Time {
		return Time(min(1000*float64(mean), least*math.Pow(1-rng.Float64(), -1/alpha)))
	}
}

// bimodal has the given mean. A tenth of the requests takes longer by a factor.
func bimodal(mean Time, factor float64) distribution {
	quick := float64(mean) / (0.9 + 0.1*factor)
	return func(rng *rand.Rand) Time {
		if rng.IntN(10) == 0 {
			return Time(quick * factor)
		}
		return Time(quick)
	}
}

// drawDeadline draws the deadline and whether clients send it.
func (d *draft) drawDeadline() (silent bool) {
	short, long := 3*d.mean+50*ms, 5*d.mean+sec
	switch d.rng.IntN(3) {
	case 0:
		d.deadline, silent = long/2, true
		d.sayf("deadline %v not sent", d.deadline.Round(ms))
	case 1:
		d.deadline = short
		d.sayf("deadline %v", d.deadline.Round(ms))
	case 2:
		d.deadline = long
		d.sayf("deadline %v", d.deadline.Round(ms))
	}
	return silent
}

// drawClients draws keys, criticalities and clients that leave.
func (d *draft) drawClients() {
	d.keys = 1
	if d.chance(0.5) {
		d.keys = int(d.between(2, 201))
		d.sayf("%d keys", d.keys)
		if d.split = d.slots > 0 && d.chance(0.3); d.split {
			d.sayf("half of them elsewhere")
		}
	}
	if d.classes = d.chance(0.5); d.classes {
		d.sayf("four classes")
	}
	if d.leaving = d.chance(0.15); d.leaving {
		d.sayf("a third leaves early")
	}
}

// request returns a generator of requests to b. Lower keys get more of them.
func (d *draft) request(b *Backend) generator {
	other := noQueue()
	return func(_ Time, rng *rand.Rand) *Request {
		r := &Request{Service: d.service(rng), Deadline: d.deadline, Backend: b}
		if d.keys > 1 {
			r.Key = int(float64(d.keys) * rng.Float64() * rng.Float64())
		}
		if d.split && r.Key%2 == 1 {
			r.Backend = other
		}
		if d.classes {
			r.Class = spillway.Sheddable + spillway.Criticality(rng.IntN(spillway.Criticalities))
		}
		if d.leaving && rng.IntN(3) == 0 {
			r.Patience = d.mean + Time(rng.Float64()*float64(d.deadline))
		}
		return r
	}
}

// drawArrivals draws the arrival process.
func (d *draft) drawArrivals() func(p *Process, request generator) {
	if d.chance(0.15) {
		return d.drawClosed()
	}
	r := d.drawRate(d.load / d.mean.Seconds())
	return func(p *Process, request generator) { p.poisson(r(p), request) }
}

// drawClosed draws clients that wait for each answer. Without a queue they would
// produce the load.
func (d *draft) drawClosed() func(p *Process, request generator) {
	pause := 5 * d.mean
	n := min(2000, max(1, int(6*d.load)))
	d.sayf("%d waiting clients", n)
	return func(p *Process, request generator) {
		for range n {
			p.loop(exponential(pause), request)
		}
	}
}

// drawRate draws the arrival rate over time. Every rate except a constant one
// exceeds the mean at times.
func (d *draft) drawRate(perSecond float64) func(p *Process) rate {
	end := d.end
	fixed := func(r rate) func(*Process) rate { return func(*Process) rate { return r } }
	switch d.rng.IntN(6) {
	case 2:
		d.sayf("ramp")
		return fixed(func(t Time) float64 { return 2 * perSecond * t.Seconds() / end.Seconds() })
	case 3:
		d.sayf("step")
		return fixed(during(span{end / 3, 2 * end / 3}, 2*perSecond, perSecond/2))
	case 4:
		period, share := Time(d.between(0.2, 5)*float64(sec)), 0.1+0.4*d.rng.Float64()
		d.sayf("bursts of %v each %v", Time(share*float64(period)).Round(ms), period.Round(ms))
		return fixed(bursts(period, Time(share*float64(period)), 0.8*perSecond/share, 0.2*perSecond/(1-share)))
	case 5:
		stay := Time(d.between(0.05, 3) * float64(sec))
		d.sayf("MMPP, changes each %v", stay.Round(ms))
		return func(p *Process) rate { return modulated(p, stay, 1.8*perSecond, 0.2*perSecond) }
	}
	d.sayf("Poisson")
	return fixed(flat(perSecond))
}

// modulated alternates between two rates after exponential times: a
// Markov-modulated Poisson process.
func modulated(p *Process, mean Time, high, low float64) rate {
	rng, stay := p.random(), exponential(mean)
	var changes []Time
	for t := stay(rng); t < p.end; t += stay(rng) {
		changes = append(changes, t)
	}
	return func(t Time) float64 {
		i, _ := slices.BinarySearch(changes, t)
		if i%2 == 0 {
			return low
		}
		return high
	}
}

// drawFaults draws faults during the second third of the run.
func (d *draft) drawFaults() {
	when := span{d.end / 3, 2 * d.end / 3}
	add := func(f func(p *Process, b *Backend)) { d.faults = append(d.faults, f) }
	if d.chance(0.2) {
		d.sayf("stalls")
		add(func(p *Process, _ *Backend) { p.stalled(when.from, when.to) })
	}
	if d.chance(0.1) {
		d.sayf("CPU short for 5 s")
		add(func(p *Process, _ *Backend) { p.starved = append(p.starved, span{when.from, when.from + 5*sec}) })
	}
	if d.slots == 0 && d.chance(0.25) {
		factor := d.between(1.5, 20)
		d.sayf("%.1f times slower", factor)
		add(func(p *Process, b *Backend) { p.slower(b, when, factor) })
	}
	if d.slots > 1 && d.chance(0.25) {
		slots := max(1, int(float64(d.slots)*d.between(0.2, 3)))
		d.sayf("then %d slots", slots)
		add(func(p *Process, b *Backend) {
			p.at(when.from, func(Time) { p.resize(b, slots) })
			p.at(when.to, func(Time) { p.resize(b, d.slots) })
		})
	}
}
