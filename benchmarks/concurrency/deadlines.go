package main

import "math/rand/v2"

// deadlines are scenarios in which requests end at their deadlines, as in a handler that passes its context on. When all of them do,
// latency does not grow any more, whatever is in flight.
var deadlines = []*Scenario{
	{
		Name: "X46 deadlines of 3 services, 5x", About: "a pool of 8 × 20 ms, whose requests end after 65 ms",
		Overload: true, End: 40 * sec, Strict: true,
		Fill: func(p *Process) { p.poisson(flat(2000), request(newPool(8), 0, constant(20*ms), 65*ms)) },
	},
	{
		Name: "X47 clients hang up, 5x", About: "the same: clients hang up after 65 ms, and send no deadlines",
		Overload: true, End: 40 * sec, Strict: true, Silent: true,
		Fill: func(p *Process) { p.poisson(flat(2000), request(newPool(8), 0, constant(20*ms), 65*ms)) },
	},
	{
		Name: "X48 processors shared, 3x", About: "no queue: all requests share 4 processors, and end after 250 ms",
		Overload: true, End: 40 * sec, Strict: true,
		Fill: func(p *Process) { p.poisson(flat(600), query(newSharing(4))) },
	},
	{
		Name: "X49 19 keys with deadlines, 10x", About: "19 keys of a pool of 22 × 170 ms, in bursts, whose requests end after 570 ms",
		Overload: true, End: 40 * sec, Strict: true, Band: 50,
		Fill: func(p *Process) {
			p.poisson(bursts(sec, 400*ms, 2600, 400), spread(request(newPool(22), 0, lognormal(170*ms, 0.5), 570*ms), 19))
		},
	},
	{
		Name: "X50 one key late, another not", About: "as X46, beside a key that waits for nothing",
		Overload: true, End: 40 * sec, Strict: true, Isolated: map[int]float64{1: 98},
		Fill: func(p *Process) {
			late := request(newPool(8), 0, constant(20*ms), 65*ms)
			other := request(noQueue(), 1, exponential(20*ms), 250*ms)
			p.poisson(flat(2200), func(at Time, rng *rand.Rand) *Request {
				if rng.IntN(11) == 0 {
					return other(at, rng)
				}
				return late(at, rng)
			})
		},
	},
	{
		Name: "X51 slower 16x, no queue", About: "a backend without a queue is 16 times slower for 10 s, so that six of ten requests end at their deadlines",
		Overload: true, End: 40 * sec, Strict: true, Limits: []int{}, Band: 85,
		Fill: func(p *Process) {
			b := noQueue()
			p.slower(b, span{15 * sec, 25 * sec}, 16)
			p.poisson(flat(500), request(b, 0, exponential(60*ms), 500*ms))
		},
	},
	{
		Name: "X52 the same, clients hang up", About: "and their clients hang up",
		Overload: true, End: 40 * sec, Strict: true, Silent: true, Limits: []int{}, Band: 97,
		Fill: func(p *Process) {
			b := noQueue()
			p.slower(b, span{15 * sec, 25 * sec}, 16)
			p.poisson(flat(500), request(b, 0, exponential(60*ms), 500*ms))
		},
	},
	{
		Name: "X53 deadlines too short, no queue", About: "one request in ten is answered before its deadline; a limit would help none of them",
		Overload: true, End: 60 * sec, Strict: true, Limits: []int{}, Band: 94,
		Fill: func(p *Process) { p.poisson(flat(500), request(noQueue(), 0, exponential(300*ms), 30*ms)) },
	},
	{
		Name: "X54 clients without patience", About: "the same, of clients that hang up: a search box with an answer for each letter",
		Overload: true, End: 60 * sec, Strict: true, Silent: true, Limits: []int{}, Band: 94,
		Fill: func(p *Process) { p.poisson(flat(500), request(noQueue(), 0, exponential(300*ms), 30*ms)) },
	},
	{
		Name: "X55 deadlines, pool 16-3-16", About: "a pool of 16 × 20 ms has 3 slots for 20 s: from half its load to 3 times; requests end after 65 ms",
		Overload: true, End: 60 * sec, Strict: true,
		Fill: func(p *Process) {
			b := newPool(16)
			p.at(20*sec, func(Time) { p.resize(b, 3) })
			p.at(40*sec, func(Time) { p.resize(b, 16) })
			p.poisson(flat(450), request(b, 0, constant(20*ms), 65*ms))
		},
	},
}
