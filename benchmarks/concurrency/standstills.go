package main

// standstills are scenarios in which the backend stands still for a part of the time, like a process that lacks the processor. What
// is in flight then waits for that, and not for one another, and a probe at such a moment measures no base latency.
var standstills = []*Scenario{
	{
		Name: "X41 backend stands still, 2.5x", About: "the backend is stopped 30 % of the time, 50 to 500 ms at a time",
		Overload: true, End: 120 * sec,
		Fill: func(p *Process) {
			b := newPool(8)
			b.stalls = p.standstills(10*sec, 110*sec)
			p.poisson(flat(1000), query(b))
		},
	},
	{
		Name: "X42 backend stands still, 0.7x", About: "the same, at 0.7 times what the pool can do then",
		Overload: true, End: 60 * sec,
		Fill: func(p *Process) {
			b := newPool(8)
			b.stalls = p.standstills(10*sec, 50*sec)
			p.poisson(flat(200), query(b))
		},
	},
	{
		Name: "X43 backend stands still, no queue", About: "a backend without a queue is stopped 30 % of the time",
		End: 60 * sec,
		Fill: func(p *Process) {
			b := noQueue()
			b.stalls = p.standstills(10*sec, 50*sec)
			p.poisson(flat(1000), request(b, 0, exponential(20*ms), 2*sec))
		},
	},
	{
		Name: "X44 both stand still, 2.5x", About: "the backend and the process are stopped 30 % of the time, each at other times",
		Overload: true, End: 120 * sec,
		Fill: func(p *Process) {
			b := newPool(8)
			b.stalls = p.standstills(10*sec, 110*sec)
			p.stalled(10*sec, 110*sec)
			p.poisson(flat(1000), query(b))
		},
	},
	{
		Name: "X45 throttled, pool 8-24-4", About: "the process is stopped for 60 ms of each 100 ms, as by a quota; the pool changes from 8 to 24 to 4",
		Overload: true, End: 90 * sec,
		Fill: func(p *Process) {
			for t := Time(0); t < 90*sec; t += 100 * ms {
				p.stalls = append(p.stalls, span{t + 40*ms, t + 100*ms})
			}
			b := newPool(8)
			p.at(30*sec, func(Time) { p.resize(b, 24) })
			p.at(60*sec, func(Time) { p.resize(b, 4) })
			p.poisson(flat(1000), query(b))
		},
	},
}
