package main

import (
	"math/rand/v2"
	"slices"

	"github.com/seed90641741/spillway"
)

// A Scenario is a load on a process.
type Scenario struct {
	Name  string
	About string
	// Overload means that at some times more requests arrive than can be served
	// before their deadlines. Otherwise no rejection is needed.
	Overload bool
	End      Time // no requests are sent from then on
	Warm     Time // what is answered before does not count
	Grace    Time // how long the run continues after End. Zero means 30 s
	// Band is the least share of the oracle's good requests that ours must
	// serve, in per cent. Zero means 95.
	Band float64
	// Isolated are keys without a problem of their own, with the least share of
	// their requests that ours must serve, in per cent.
	Isolated map[int]float64
	// Critical is the least share of CRITICAL_PLUS requests that ours must serve, in per cent.
	Critical float64
	// Silent means that clients send no deadlines.
	Silent bool
	// Strict means that a request that runs ends at its deadline, wherever it is: with Silent because its client hangs up.
	Strict bool
	// Limits are the static limits of the oracle. Nil means [limits].
	Limits []int
	Fill   func(p *Process)
}

// suite returns all scenarios.
func suite() []*Scenario {
	return slices.Concat(scenarios, adversaries, standstills, deadlines, innocents)
}

func (s *Scenario) band() float64 {
	if s.Band == 0 {
		return 95
	}
	return s.Band
}

// candidates are the static limits of the oracle.
func (s *Scenario) candidates() []int {
	if s.Limits != nil {
		return s.Limits
	}
	return limits
}

// query returns a generator of the usual request: 20 ms at a backend, with a deadline
// of 250 ms.
func query(b *Backend) generator { return request(b, 0, exponential(20*ms), 250*ms) }

// request returns a generator of requests of one key.
func request(b *Backend, key int, service distribution, deadline Time) generator {
	return func(_ Time, rng *rand.Rand) *Request {
		return &Request{Key: key, Service: service(rng), Deadline: deadline, Backend: b}
	}
}

// stream returns a generator of requests that should open within 250 ms and stay open
// for a minute.
func stream(b *Backend, key int) generator {
	return func(Time, *rand.Rand) *Request {
		return &Request{Key: key, Service: 60 * sec, Deadline: 250 * ms, Stream: true, Backend: b}
	}
}

// during returns a rate with another value inside a span.
func during(s span, inside, outside float64) rate {
	return func(t Time) float64 {
		if s.has(t) {
			return inside
		}
		return outside
	}
}

// bursts is a rate that is high for some time at the begin of each period.
func bursts(period, long Time, high, otherwise float64) rate {
	return func(t Time) float64 {
		if t%period < long {
			return high
		}
		return otherwise
	}
}

// queries sends queries to a pool of 8 slots, which serves 400 per second.
func queries(perSecond rate) func(p *Process) {
	return func(p *Process) { p.poisson(perSecond, query(newPool(8))) }
}

// slower makes a backend slower for a span.
func (p *Process) slower(b *Backend, s span, factor float64) {
	p.at(s.from, func(Time) { b.slower = factor })
	p.at(s.to, func(Time) { b.slower = 1 })
}

var scenarios = []*Scenario{
	{
		Name: "S1 0.9x", About: "pool of 8 × 20 ms at 0.9 times its capacity",
		Overload: true, End: 20 * sec, Fill: queries(flat(360)),
	},
	{
		Name: "S1 1.1x", About: "the same at 1.1 times",
		Overload: true, End: 20 * sec, Fill: queries(flat(440)),
	},
	{
		Name: "S1 2x", About: "the same at 2 times",
		Overload: true, End: 20 * sec, Fill: queries(flat(800)),
	},
	{
		Name: "S1 5x", About: "the same at 5 times",
		Overload: true, End: 20 * sec, Fill: queries(flat(2000)),
	},
	{
		Name: "S1 10x", About: "the same at 10 times",
		Overload: true, End: 20 * sec, Fill: queries(flat(4000)),
	},
	{
		Name: "S1 10x fixed 20ms", About: "the same, every request takes 20 ms",
		Overload: true, End: 20 * sec,
		Fill: func(p *Process) {
			p.poisson(flat(4000), request(newPool(8), 0, constant(20*ms), 250*ms))
		},
	},
	{
		Name: "S1r 3x random order", About: "the pool serves its queue in random order",
		Overload: true, End: 20 * sec,
		Fill: func(p *Process) {
			b := newPool(8)
			b.random = p.random()
			p.poisson(flat(1200), query(b))
		},
	},
	{
		Name: "S2 .5-10-.5", About: "0.5, 10 and again 0.5 times the capacity, 10 s each",
		Overload: true, End: 30 * sec,
		Fill: queries(during(span{10 * sec, 20 * sec}, 4000, 200)),
	},
	{
		Name: "S3 1000 streams", About: "1000 streams open at the same time, with quick calls",
		End: 20 * sec,
		Fill: func(p *Process) {
			b, open, rng := noQueue(), stream(noQueue(), 1), p.random()
			p.at(2*sec, func(at Time) {
				for range 1000 {
					p.send(at, open(at, rng))
				}
			})
			p.poisson(flat(300), request(b, 2, constant(2*ms), 250*ms))
		},
	},
	{
		Name: "S4 100 long polls", About: "100 clients poll for 10 s each, with quick calls",
		End: 60 * sec,
		Fill: func(p *Process) {
			b := noQueue()
			for range 100 {
				p.loop(constant(10*ms), request(b, 1, constant(10*sec), 11*sec))
			}
			p.poisson(flat(100), request(b, 2, constant(2*ms), 250*ms))
		},
	},
	{
		Name: "S5 1ms+150ms", About: "3300 requests per second each of 1 ms and of 150 ms, no queue",
		End: 20 * sec,
		Fill: func(p *Process) {
			b := noQueue()
			p.poisson(flat(3300), request(b, 1, exponential(150*ms), 2*sec))
			p.poisson(flat(3300), request(b, 2, exponential(ms), 250*ms))
		},
	},
	{
		Name: "S6 20-60-20 no queue", About: "a backend without a queue is 3 times slower for 10 s",
		End: 30 * sec,
		Fill: func(p *Process) {
			b := noQueue()
			p.slower(b, span{10 * sec, 20 * sec}, 3)
			p.poisson(flat(2000), request(b, 0, exponential(20*ms), 500*ms))
		},
	},
	{
		Name: "S7 pool 8-3-24 3x", About: "the pool shrinks from 8 slots to 3 and grows to 24",
		Overload: true, End: 30 * sec,
		Fill: func(p *Process) {
			b := newPool(8)
			p.at(10*sec, func(Time) { p.resize(b, 3) })
			p.at(20*sec, func(Time) { p.resize(b, 24) })
			p.poisson(flat(1200), query(b))
		},
	},
	{
		Name: "S8 stalls at 2.5x", About: "the process is stopped 30 % of the time for 20 s",
		Overload: true, End: 60 * sec,
		Fill: func(p *Process) {
			p.stalled(10*sec, 30*sec)
			p.poisson(flat(1000), query(newPool(8)))
		},
	},
	{
		Name: "S8c cold, 1x then 2.5x", About: "stalls from the start at half the capacity, then 2.5 times the capacity",
		Overload: true, End: 60 * sec,
		Fill: func(p *Process) {
			p.stalled(0, 20*sec)
			p.poisson(during(span{0, 20 * sec}, 200, 1000), query(newPool(8)))
		},
	},
	{
		Name: "S8i idle, stalls", About: "stalls without any overload",
		End: 40 * sec,
		Fill: func(p *Process) {
			p.stalled(10*sec, 30*sec)
			p.poisson(flat(1000), request(noQueue(), 0, exponential(20*ms), sec))
		},
	},
	{
		Name: "S9 half leave at 30ms", About: "half of the clients leave after 30 ms, at 3 times the capacity",
		Overload: true, End: 20 * sec,
		Fill: func(p *Process) {
			next := query(newPool(8))
			p.poisson(flat(1200), func(at Time, rng *rand.Rand) *Request {
				r := next(at, rng)
				if rng.IntN(2) == 0 {
					r.Patience = 30 * ms
				}
				return r
			})
		},
	},
	{
		Name: "S10 two routes 3x", About: "routes of 5 ms and of 50 ms share a pool, half of the work each",
		Overload: true, Band: 60, End: 20 * sec,
		Fill: func(p *Process) {
			b := newPool(8)
			p.poisson(flat(2400), request(b, 1, exponential(5*ms), 250*ms))
			p.poisson(flat(240), request(b, 2, exponential(50*ms), 250*ms))
		},
	},
	{
		Name: "S10b 40 keys 3x", About: "40 keys share a pool at 3 times its capacity",
		Overload: true, End: 20 * sec,
		Fill: func(p *Process) { p.poisson(flat(1200), spread(query(newPool(8)), 40)) },
	},
	{
		Name: "S11a heavy tail, idle", About: "lognormal times of 20 ms, σ = 1.5, no queue",
		End: 20 * sec,
		Fill: func(p *Process) {
			p.poisson(flat(5000), request(noQueue(), 0, lognormal(20*ms, 1.5), 5*sec))
		},
	},
	{
		Name: "S11b heavy tail, 2x", About: "the same times at a pool of 8, twice its capacity",
		Overload: true, End: 20 * sec,
		Fill: func(p *Process) {
			p.poisson(flat(800), request(newPool(8), 0, lognormal(20*ms, 1.5), 250*ms))
		},
	},
	{
		Name: "S12 closed, 200 clients", About: "200 clients wait for their answer and pause for 100 ms",
		Overload: true, End: 20 * sec,
		Fill: func(p *Process) {
			next := query(newPool(8))
			for range 200 {
				p.loop(exponential(100*ms), next)
			}
		},
	},
	{
		Name: "S13 bursts", About: "10 times the capacity for 0.1 s of each second, 0.2 times otherwise",
		Overload: true, End: 30 * sec, Band: 85,
		Fill: queries(bursts(sec, 100*ms, 4000, 80)),
	},
	{
		Name: "S14 slow rpc idle", About: "few requests, slow and very different: 0.5 s, σ = 1.5, no queue",
		End: 30 * sec,
		Fill: func(p *Process) {
			p.poisson(flat(40), request(noQueue(), 0, lognormal(500*ms, 1.5), 20*sec))
		},
	},
	{
		Name: "S15 mix shift 10-60-10% slow", About: "the share of slow requests in one key changes, no queue",
		End: 30 * sec,
		Fill: func(p *Process) {
			b, quick, slow := noQueue(), exponential(2*ms), exponential(150*ms)
			share := during(span{10 * sec, 20 * sec}, 0.6, 0.1)
			p.poisson(flat(1000), func(at Time, rng *rand.Rand) *Request {
				service := quick
				if rng.Float64() < share(at) {
					service = slow
				}
				return &Request{Service: service(rng), Deadline: 3 * sec, Backend: b}
			})
		},
	},
	{
		Name: "S16 slower 20-60 at 3x", About: "the pool is 3 times slower for 10 s, under overload",
		Overload: true, End: 30 * sec,
		Fill: func(p *Process) {
			b := newPool(8)
			p.slower(b, span{10 * sec, 20 * sec}, 3)
			p.poisson(flat(1200), query(b))
		},
	},
	{
		Name: "S17 own pool 3x + other", About: "key 1 overloads a pool, key 2 does not use it",
		Overload: true, End: 20 * sec, Isolated: map[int]float64{2: 99},
		Fill: func(p *Process) {
			p.poisson(flat(1200), request(newPool(8), 1, exponential(20*ms), 250*ms))
			p.poisson(flat(400), request(noQueue(), 2, exponential(5*ms), 250*ms))
		},
	},
	{
		Name: "S18 pool 200, 2x", About: "pool of 200 × 20 ms at twice its capacity",
		Overload: true, End: 20 * sec, Limits: limitsFor(200),
		Fill: func(p *Process) { p.poisson(flat(20000), query(newPool(200))) },
	},
	{
		Name: "S19 pool 2 x 50ms, 3x", About: "pool of 2 × 50 ms, which serves 40 per second",
		Overload: true, End: 20 * sec, Band: 80,
		Fill: func(p *Process) {
			p.poisson(flat(120), request(newPool(2), 0, exponential(50*ms), 600*ms))
		},
	},
	{
		Name: "S20 ramp 0.5-3x in 60 s", About: "the load grows slowly past the capacity",
		Overload: true, End: 60 * sec,
		Fill: queries(func(t Time) float64 { return 200 + 1000*t.Seconds()/60 }),
	},
	{
		Name: "S21 10x, 5% critical", About: "5 % CRITICAL_PLUS, the rest SHEDDABLE, at 10 times the capacity",
		Overload: true, End: 20 * sec, Critical: 97,
		Fill: func(p *Process) {
			next := query(newPool(8))
			p.poisson(flat(4000), func(at Time, rng *rand.Rand) *Request {
				r := next(at, rng)
				r.Class = spillway.Sheddable
				if rng.Float64() < 0.05 {
					r.Class = spillway.CriticalPlus
				}
				return r
			})
		},
	},
	{
		Name: "S8b CPU short 8 s, 3x", About: "the process is 100-300 ms late for 8 s, under overload",
		Overload: true, End: 60 * sec,
		Fill: func(p *Process) {
			p.starved = append(p.starved, span{10 * sec, 18 * sec})
			p.poisson(flat(1200), request(newPool(8), 0, exponential(20*ms), 600*ms))
		},
	},
	{
		Name: "S8d CPU short 8 s, idle", About: "the same without overload",
		End: 40 * sec,
		Fill: func(p *Process) {
			p.starved = append(p.starved, span{10 * sec, 18 * sec})
			p.poisson(flat(1000), request(noQueue(), 0, exponential(20*ms), 2*sec))
		},
	},
	{
		Name: "S22 3x, streams in the key", About: "4 streams per second open in the overloaded key",
		Overload: true, End: 40 * sec,
		Fill: func(p *Process) {
			p.poisson(flat(1200), query(newPool(8)))
			p.poisson(flat(4), stream(noQueue(), 0))
		},
	},
	{
		Name: "W1 20-500 no queue", About: "a backend without a queue is 25 times slower for 10 s",
		End: 40 * sec,
		Fill: func(p *Process) {
			b := noQueue()
			p.slower(b, span{10 * sec, 20 * sec}, 25)
			p.poisson(flat(1000), request(b, 0, exponential(20*ms), 3*sec))
		},
	},
	{
		Name: "W2 uploads", About: "30 % wait 3 s for the body from the client, the load triples for 10 s",
		End: 40 * sec,
		Fill: func(p *Process) {
			b, work, body := noQueue(), exponential(10*ms), exponential(3*sec)
			p.poisson(during(span{10 * sec, 20 * sec}, 600, 200), func(_ Time, rng *rand.Rand) *Request {
				r := &Request{Service: work(rng), Deadline: 15 * sec, Backend: b}
				if rng.Float64() < 0.3 {
					r.Service += body(rng)
				}
				return r
			})
		},
	},
	{
		Name: "W3 backend hangs 1 s", About: "the pool serves nothing new for 1 s, at 0.8 times its capacity",
		Overload: true, End: 40 * sec,
		Fill: func(p *Process) {
			b := newPool(8)
			p.at(10*sec, func(Time) { p.resize(b, 0) })
			p.at(11*sec, func(Time) { p.resize(b, 8) })
			p.poisson(flat(320), query(b))
		},
	},
	{
		Name: "W4 pool of 8, 2 s, 3x", About: "pool of 8 × 2 s, which serves 4 per second, cold start",
		Overload: true, End: 120 * sec, Band: 60,
		Fill: func(p *Process) {
			p.poisson(flat(12), request(newPool(8), 0, exponential(2*sec), 15*sec))
		},
	},
}

// spread returns a generator that gives each request a random one of some keys, beginning with the one that it has.
func spread(request generator, keys int) generator {
	return func(at Time, rng *rand.Rand) *Request {
		r := request(at, rng)
		r.Key += rng.IntN(keys)
		return r
	}
}
