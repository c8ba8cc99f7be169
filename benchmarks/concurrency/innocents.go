package main

// innocents are scenarios in which some keys wait for a queue, and others do not. The others must not be
// rejected for it.
var innocents = []*Scenario{
	{
		Name: "X27 one key 3x, another waits for nothing", About: "key 1 overloads a pool of 8, key 2 takes 50 ms elsewhere",
		Overload: true, End: 20 * sec, Isolated: map[int]float64{2: 99},
		Fill: func(p *Process) {
			p.poisson(flat(1200), request(newPool(8), 1, exponential(20*ms), 250*ms))
			p.poisson(flat(500), request(noQueue(), 2, exponential(50*ms), sec))
		},
	},
	{
		Name: "X28 two keys of a pool 3x, a third not", About: "keys 1 and 2 overload a pool of 8, key 3 takes 30 ms elsewhere",
		Overload: true, End: 20 * sec, Isolated: map[int]float64{3: 98},
		Fill: func(p *Process) {
			pair(p)
			p.poisson(flat(400), request(noQueue(), 3, exponential(30*ms), sec))
		},
	},
	{
		Name: "X29 a key that comes later", About: "keys 1 and 2 overload a pool of 8, key 3 comes when they have been limited for 10 s",
		Overload: true, End: 20 * sec, Isolated: map[int]float64{3: 99},
		Fill: func(p *Process) {
			pair(p)
			p.poisson(during(span{10 * sec, 20 * sec}, 1000, 0), request(noQueue(), 3, exponential(30*ms), sec))
		},
	},
	{
		Name: "X30 20 rare keys, two at 3x", About: "keys 1 and 2 overload a pool of 8, 20 others have 5 requests per second each",
		Overload: true, End: 20 * sec, Isolated: map[int]float64{3: 90, 13: 90, 22: 90},
		Fill: func(p *Process) {
			pair(p)
			p.poisson(flat(100), spread(request(noQueue(), 3, exponential(30*ms), sec), 20))
		},
	},
	{
		Name: "X31 1000 names, the last 3x", About: "1000 keys have one request per second each, then another key overloads a pool of 8",
		Overload: true, End: 20 * sec, Isolated: map[int]float64{1: 95},
		Fill: func(p *Process) {
			p.poisson(flat(1000), spread(request(noQueue(), 1, exponential(30*ms), sec), 1000))
			p.poisson(during(span{5 * sec, 20 * sec}, 1200, 0), request(newPool(8), 0, exponential(20*ms), 250*ms))
		},
	},
}

// pair sends three times what a pool of 8 can do, half of it with each of two keys.
func pair(p *Process) {
	b := newPool(8)
	p.poisson(flat(600), request(b, 1, exponential(20*ms), 250*ms))
	p.poisson(flat(600), request(b, 2, exponential(20*ms), 250*ms))
}
