package main

import (
	"math/rand/v2"

	"github.com/seed90641741/spillway"
)

// adversaries are further scenarios, each against an assumption that a limit may make.
var adversaries = []*Scenario{
	{
		Name: "X1 short of CPU, 2.5x", About: "two pools of 8; the process is short of CPU half of the time for 3 minutes",
		Overload: true, End: 180 * sec, Limits: limitsFor(16),
		Fill: func(p *Process) {
			rng := p.random()
			for t := 10 * sec; t < 170*sec; t += sec + Time(rng.Float64()*float64(9*sec)) {
				end := t + sec + Time(rng.Float64()*float64(9*sec))
				p.starved = append(p.starved, span{t, end})
				t = end
			}
			a, b := newPool(8), newPool(8)
			next := request(nil, 0, exponential(20*ms), 600*ms)
			p.poisson(flat(2000), func(at Time, rng *rand.Rand) *Request {
				r := next(at, rng)
				if r.Backend = a; rng.IntN(2) == 0 {
					r.Backend = b
				}
				return r
			})
		},
	},
	{
		Name: "X2 pool 500, 200 keys, 3x", About: "200 keys share a pool of 500 × 100 ms at 3 times its capacity",
		Overload: true, End: 20 * sec, Limits: limitsFor(500),
		Fill: func(p *Process) {
			p.poisson(flat(15000), spread(request(newPool(500), 0, exponential(100*ms), sec), 200))
		},
	},
	{
		Name: "X3 pool 1 x 1ms, 3x", About: "one slot that serves 1000 per second",
		Overload: true, End: 20 * sec,
		Fill: func(p *Process) { p.poisson(flat(3000), request(newPool(1), 0, exponential(ms), 100*ms)) },
	},
	{
		Name: "X4 processors shared, 3x", About: "no queue: all requests share 4 processors, 3 times their capacity",
		Overload: true, End: 20 * sec, Band: 70,
		Fill: func(p *Process) { p.poisson(flat(600), query(newSharing(4))) },
	},
	{
		Name: "X4i processors shared, .7x", About: "the same at 0.7 times the capacity: slower under load, no overload",
		End:  20 * sec,
		Fill: func(p *Process) { p.poisson(flat(140), query(newSharing(4))) },
	},
	{
		Name: "X5 MMPP, .2-3x", About: "the load changes at random between 0.2 and 3 times the capacity, each 2 s",
		Overload: true, End: 60 * sec, Band: 93,
		Fill: func(p *Process) { p.poisson(modulated(p, 2*sec, 1200, 80), query(newPool(8))) },
	},
	{
		Name: "X6 slow drift, no queue", About: "a backend without a queue becomes 10 times slower within a minute",
		End: 80 * sec,
		Fill: func(p *Process) {
			b := noQueue()
			p.each(100*ms, func() { b.slower = 1 + 9*min(1, p.Now().Seconds()/60) })
			p.poisson(flat(500), request(b, 0, exponential(20*ms), 3*sec))
		},
	},
	{
		Name: "X7 growth 50-5000/s", About: "load on a backend without a queue grows 100 times within 30 s",
		End: 30 * sec,
		Fill: func(p *Process) {
			p.poisson(func(t Time) float64 { return 50 + 4950*t.Seconds()/30 }, request(noQueue(), 0, lognormal(50*ms, 1), 2*sec))
		},
	},
	{
		Name: "X8 batches, half load", About: "32 requests at the same time, each 160 ms: a pool of 8 serves them in 80 ms",
		End: 20 * sec,
		Fill: func(p *Process) {
			rng, next := p.random(), request(newPool(8), 0, exponential(20*ms), 500*ms)
			p.each(160*ms, func() {
				for range 32 {
					p.send(p.Now(), next(p.Now(), rng))
				}
			})
		},
	},
	{
		Name: "X9 one slow key of 10, 3x", About: "one of 10 keys that share a pool takes 10 times longer than the others",
		Overload: true, End: 20 * sec,
		Fill: func(p *Process) {
			b, quick, slow := newPool(16), exponential(10*ms), exponential(100*ms)
			p.poisson(flat(2526), func(_ Time, rng *rand.Rand) *Request {
				r := &Request{Key: rng.IntN(10), Deadline: 500 * ms, Backend: b}
				if r.Service = quick(rng); r.Key == 0 {
					r.Service = slow(rng)
				}
				return r
			})
		},
	},
	{
		Name: "X10 four classes, 2x", About: "a quarter of the requests for each criticality, twice the capacity",
		Overload: true, Band: 94, End: 20 * sec, Critical: 98,
		Fill: func(p *Process) {
			next := query(newPool(8))
			p.poisson(flat(800), func(at Time, rng *rand.Rand) *Request {
				r := next(at, rng)
				r.Class = spillway.Sheddable + spillway.Criticality(rng.IntN(spillway.Criticalities))
				return r
			})
		},
	},
	{
		Name: "X11 uploads to a pool, 3x", About: "a third of the requests reads a body for 1 s (suspended) before it uses the pool",
		Overload: true, End: 30 * sec,
		Fill: func(p *Process) {
			next, body := query(newPool(8)), exponential(sec)
			p.poisson(flat(1200), func(at Time, rng *rand.Rand) *Request {
				r := next(at, rng)
				if rng.IntN(3) == 0 {
					r.Body = body(rng)
					r.Deadline += r.Body
				}
				return r
			})
		},
	},
	{
		Name: "X12 pool 256 fixed, 5x", About: "pool of 256, every request takes 20 ms: answers come in batches, one each 20 ms",
		Overload: true, End: 5 * sec, Limits: limitsFor(256),
		Fill: func(p *Process) { p.poisson(flat(64000), request(newPool(256), 0, constant(20*ms), 250*ms)) },
	},
	{
		Name: "X13 pool 256 ±1 %, 5x", About: "the same, every request takes 19.8 to 20.2 ms",
		Overload: true, End: 5 * sec, Limits: limitsFor(256),
		Fill: func(p *Process) { p.poisson(flat(64000), request(newPool(256), 0, around(20*ms, 0.01), 250*ms)) },
	},
	{
		Name: "X14 two pools, 3x and 1.5x", About: "two keys, each with a pool of 8, become overloaded at the same time",
		Overload: true, End: 20 * sec, Isolated: map[int]float64{1: 31, 2: 52},
		Fill: func(p *Process) {
			p.poisson(flat(1200), request(newPool(8), 1, exponential(20*ms), 250*ms))
			p.poisson(flat(2400), request(newPool(8), 2, exponential(5*ms), 250*ms))
		},
	},
	{
		Name: "X15 pool at 10x beside half", About: "key 1 overloads a small pool, key 2 uses another at half of its capacity",
		Overload: true, End: 20 * sec, Isolated: map[int]float64{2: 99},
		Fill: func(p *Process) {
			p.poisson(during(span{5 * sec, 20 * sec}, 1000, 30), request(newPool(2), 1, exponential(20*ms), 250*ms))
			p.poisson(flat(600), request(newPool(16), 2, exponential(20*ms), 250*ms))
		},
	},
	{
		Name: "X16 closed, 200 at once", About: "200 clients that begin together send again 10 ms after each answer or rejection",
		Overload: true, End: 20 * sec, Limits: []int{8, 10, 12, 16},
		Fill: func(p *Process) {
			next := query(newPool(8))
			for range 200 {
				p.loop(constant(10*ms), next)
			}
		},
	},
	{
		Name: "X17 closed, 5000 at once", About: "5000 clients that begin together and pause for 100 ms: the first requests of all are served for 12.5 s",
		Overload: true, End: 40 * sec, Limits: []int{8, 12}, Band: 65,
		Fill: func(p *Process) {
			next := query(newPool(8))
			for range 5000 {
				p.loop(constant(100*ms), next)
			}
		},
	},
	{
		Name: "X18 backend hangs 3 s", About: "the pool serves nothing new for 3 s, at 0.8 times its capacity",
		Overload: true, End: 40 * sec, Band: 90,
		Fill: func(p *Process) {
			b := newPool(8)
			p.at(10*sec, func(Time) { p.resize(b, 0) })
			p.at(13*sec, func(Time) { p.resize(b, 8) })
			p.poisson(flat(320), query(b))
		},
	},
	{
		Name: "X19 20-500 fixed, no queue", About: "a backend without a queue is 25 times slower for 10 s, equal requests without deadlines",
		End: 40 * sec, Silent: true,
		Fill: func(p *Process) {
			b := noQueue()
			p.slower(b, span{10 * sec, 20 * sec}, 25)
			p.poisson(flat(1000), request(b, 0, constant(20*ms), 3*sec))
		},
	},
	{
		Name: "X20 pools of 2 and 500 ms, 3x", About: "two keys with pools of 4 × 2 ms and 8 × 500 ms, both at 3 times their capacity",
		Overload: true, End: 20 * sec, Band: 70, Isolated: map[int]float64{2: 10},
		Fill: func(p *Process) {
			p.poisson(flat(6000), request(newPool(4), 1, exponential(2*ms), 100*ms))
			p.poisson(flat(48), request(newPool(8), 2, exponential(500*ms), 4*sec))
		},
	},
	{
		Name: "X21 all leave at 100ms, 3x", About: "clients send no deadlines and leave after 100 ms, 3 times the capacity",
		Overload: true, End: 20 * sec, Silent: true, Fill: impatient(newPool, 20*ms, 100*ms),
	},
	{
		Name: "X22 leave at 30ms, no queue", About: "the same after 30 ms at a backend without a queue, where requests take 50 ms",
		End: 20 * sec, Silent: true,
		Fill: impatient(func(int) *Backend { return noQueue() }, 50*ms, 30*ms),
	},
	{
		Name: "X23 deadline 50ms, 3x", About: "deadlines of 50 ms on work of 20 ms, 3 times the capacity",
		Overload: true, End: 20 * sec, Band: 80,
		Fill: func(p *Process) { p.poisson(flat(1200), request(newPool(8), 0, exponential(20*ms), 50*ms)) },
	},
	{
		Name: "X24 deadlines 50ms and 1s, 3x", About: "a third has deadlines of 50 ms and is CRITICAL_PLUS, the rest of 1 s and SHEDDABLE",
		Overload: true, End: 20 * sec, Band: 83, Critical: 58,
		Fill: func(p *Process) {
			b := newPool(8)
			p.poisson(flat(1200), func(_ Time, rng *rand.Rand) *Request {
				r := &Request{Service: exponential(20 * ms)(rng), Deadline: sec, Class: spillway.Sheddable, Backend: b}
				if rng.IntN(3) == 0 {
					r.Deadline, r.Class = 50*ms, spillway.CriticalPlus
				}
				return r
			})
		},
	},
	{
		Name: "X25 half from a cache, 2x", About: "half of the requests of a key need 2 ms and nothing of its pool, the other half come at twice its capacity",
		Overload: true, End: 30 * sec, Band: 90,
		Fill: func(p *Process) { cached(p, 2, 480, 1600, newPool(8), exponential(20*ms)) },
	},
	{
		Name: "X26 half from a cache, no queue", About: "the same, where the other half wait for nothing and take 300 ms",
		End: 30 * sec, Silent: true,
		Fill: func(p *Process) { cached(p, 2, 480, 1600, noQueue(), exponential(300*ms)) },
	},
	{
		Name: "X32 third from a cache, 2x", About: "a third of the requests of a key need 2 ms and nothing of its pool, the others come at twice its capacity",
		Overload: true, End: 30 * sec, Band: 80,
		Fill: func(p *Process) { cached(p, 3, 360, 1200, newPool(8), exponential(20*ms)) },
	},
	{
		Name: "X33 four of five from a cache, 4x", About: "four of five need 2 ms and nothing of the pool; a limit would reject three quarters of these, too",
		End: 30 * sec, Silent: true,
		Fill: func(p *Process) { cached(p, -5, 1200, 8000, newPool(8), exponential(20*ms)) },
	},
	{
		Name: "X34 a third leaves the queue, 5x", About: "a pool of 3, deadlines of 113 ms; a third of the clients leaves within 133 ms; bursts of 124 ms",
		Overload: true, End: 20 * sec, Band: 80, Fill: leavers,
	},
	{
		Name: "X35 deadlines of 3 services, 5x", About: "a pool of 3 × 300 ms, deadlines of 950 ms, Poisson",
		Overload: true, End: 60 * sec, Band: 75,
		Fill: func(p *Process) { p.poisson(flat(50), request(newPool(3), 0, constant(300*ms), 950*ms)) },
	},
	{
		Name: "X36 80 keys at once, 5x", About: "80 keys overload a pool of 5 × 30 ms from the first moment, so that most have few requests when the queue is found",
		Overload: true, End: 20 * sec, Band: 65,
		Fill: func(p *Process) {
			p.poisson(flat(830), spread(request(newPool(5), 0, lognormal(30*ms, 1.2), 142*ms), 80))
		},
	},
	{
		Name: "X39 60 more keys, 3x", About: "two keys overload a pool of 8, and from 10 s on 60 others, which are rare, send three times what it can do",
		Overload: true, End: 30 * sec, Band: 90,
		Fill: func(p *Process) {
			b := newPool(8)
			p.poisson(flat(600), spread(query(b), 2))
			p.poisson(during(span{10 * sec, 30 * sec}, 1200, 0), spread(request(b, 2, exponential(20*ms), 250*ms), 60))
		},
	},
	{
		Name: "X40 a new key each 100 ms, 3x", About: "each key is used for a second, and ten of them overload a pool of 8 at any time",
		Overload: true, End: 30 * sec, Band: 85,
		Fill: func(p *Process) {
			next := query(newPool(8))
			p.poisson(flat(1200), func(at Time, rng *rand.Rand) *Request {
				r := next(at, rng)
				r.Key = int(at/(100*ms)) + rng.IntN(10)
				return r
			})
		},
	},
	{
		Name: "X37 bursts, no queue", About: "requests of 525 ms, twelve times as many for a second of each five: after that only the slow ones are left",
		End: 60 * sec,
		Fill: func(p *Process) {
			p.poisson(bursts(5*sec, sec, 600, 50), request(noQueue(), 0, exponential(525*ms), 5*sec))
		},
	},
	{
		Name: "X38 bursts, slower, no queue", About: "requests of 100 ms, nine times as many for a fifth of each second, 2.8 times slower from 10 s to 20 s",
		End: 30 * sec,
		Fill: func(p *Process) {
			b := noQueue()
			p.slower(b, span{10 * sec, 20 * sec}, 2.8)
			p.poisson(bursts(sec, 200*ms, 4500, 500), request(b, 0, exponential(100*ms), 2*sec))
		},
	},
}

// leavers send 715 requests per second in bursts to a pool of 3, which serves 143 per second.
func leavers(p *Process) {
	next := request(newPool(3), 0, lognormal(21*ms, 0.8), 113*ms)
	p.poisson(bursts(874*ms, 124*ms, 4000, 170), func(at Time, rng *rand.Rand) *Request {
		r := next(at, rng)
		if rng.IntN(3) == 0 {
			r.Patience = 20*ms + Time(rng.Float64()*float64(113*ms))
		}
		return r
	})
}

// cached sends calm requests per second for 10 s and then busy ones. One of n finds its answer in a cache; if n is negative, all others do.
func cached(p *Process, n int, calm, busy float64, backend *Backend, service func(*rand.Rand) Time) {
	cache := noQueue()
	p.poisson(func(t Time) float64 {
		if t < 10*sec {
			return calm
		}
		return busy
	}, func(_ Time, rng *rand.Rand) *Request {
		if hit := rng.IntN(max(n, -n)) == 0; hit == (n > 0) {
			return &Request{Service: 2 * ms, Deadline: sec, Backend: cache}
		}
		return &Request{Service: service(rng), Deadline: sec, Backend: backend}
	})
}

// impatient sends 1200 requests per second, whose clients leave.
func impatient(backend func(slots int) *Backend, mean, leave Time) func(p *Process) {
	return func(p *Process) {
		next := request(backend(8), 0, exponential(mean), leave)
		p.poisson(flat(1200), func(at Time, rng *rand.Rand) *Request {
			r := next(at, rng)
			r.Patience = leave
			return r
		})
	}
}
