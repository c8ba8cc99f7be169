package main

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Holes are families of scenarios that begin where a limit knows nothing, or knows something wrong: each is one row and as many variations
// of it as one likes. In those that are not an Overload nothing need be rejected.
var holes = []struct {
	name, about string
	least       float64 // good requests in the mean of its variations, in per cent of the oracle's
	most        float64 // per cent of false rejections where nothing need be rejected
	draw        func(h *hole)
}{
	{"H1 cold", "the process starts before a backend that works on for clients that have left, behind a backlog", 90, 5, (*hole).cold},
	{"H2 slow", "a pool whose requests take longer than 10 s", 75, 5, (*hole).slow},
	{"H3 standstill", "the backend stands still for seconds at three quarters of its capacity", 97, 2, (*hole).standstill},
	{"H4 slower", "no queue, and a service of seconds becomes slower", 97, 2, (*hole).slower},
	{"H5 in time", "clients that wait for one another, and all of them for less than their deadlines", 95, 12, (*hole).inTime},
	{"H6 burst", "a burst that drains by itself", 97, 2, (*hole).burst},
}

// A hole is a scenario in the making. Its first one, of seed 0, has the middle of each range.
type hole struct {
	*Scenario
	rng *rand.Rand
}

// between returns a random number whose logarithm is uniform, or the middle.
func (h *hole) between(least, most float64) float64 {
	at := 0.5
	if h.rng != nil {
		at = h.rng.Float64()
	}
	return least * math.Exp(at*math.Log(most/least))
}

// one returns one of some numbers, or the first.
func (h *hole) one(of ...float64) float64 {
	if h.rng == nil {
		return of[0]
	}
	return of[h.rng.IntN(len(of))]
}

// seconds is between, as a time.
func (h *hole) seconds(least, most float64) Time { return Time(h.between(least, most) * float64(sec)) }

// times returns a distribution with a mean.
func (h *hole) times(mean Time) distribution {
	switch int(h.one(0, 1, 2)) {
	case 1:
		return constant(mean)
	case 2:
		return lognormal(mean, 0.5)
	}
	return exponential(mean)
}

func (h *hole) sayf(format string, args ...any) { h.About = fmt.Sprintf(format, args...) }

// holesOf returns each row, and n variations of it from a seed on.
func holesOf(n, from uint64) (list []*Scenario) {
	for f, family := range holes {
		for i := range n + 1 {
			h := &hole{Scenario: &Scenario{Name: fmt.Sprintf("%s %d", family.name, i)}}
			if i > 0 {
				h.Name = fmt.Sprintf("%s %d", family.name, from+i)
				h.rng = rand.New(rand.NewPCG(from+i, uint64(f)))
			}
			family.draw(h)
			list = append(list, h.Scenario)
		}
	}
	return list
}

// cold: 80 % of the capacity must be served 15 s after the time that the backlog needs to drain.
func (h *hole) cold() {
	slots, mean := int(h.one(2, 1, 4, 8, 20)), h.seconds(0.02, 0.125)
	capacity := float64(slots) / mean.Seconds()
	factor, backlog, patience := h.one(2, 10, 1.3, 4), h.one(10, 1000, 0, 100), h.seconds(0.5, 2)
	service := h.times(mean)
	drained := Time(backlog / capacity * float64(sec))
	h.Overload, h.Silent, h.Warm = true, true, drained+15*sec
	h.End = h.Warm + 45*sec
	h.Limits = limitsFor(slots)
	h.sayf("pool of %d × %v at %.1f times its capacity, a backlog of %.0f, clients hang up after %v", slots, mean.Round(ms), factor, backlog, patience.Round(ms))
	h.Fill = func(p *Process) {
		b := newPool(slots)
		b.worksOn = true
		p.behind(b, int(backlog), service)
		p.poisson(flat(factor*capacity), func(_ Time, rng *rand.Rand) *Request {
			return &Request{Service: service(rng), Deadline: patience, Patience: patience, Backend: b}
		})
	}
}

func (h *hole) slow() {
	slots, mean, factor := int(h.one(10, 5, 20, 40)), h.seconds(10, 16), h.one(1.5, 1.2, 2, 3)
	deadline := Time(h.between(3, 5) * float64(mean))
	service := h.times(mean)
	h.Overload, h.End, h.Grace = true, 40*mean, 10*mean
	h.Limits = limitsFor(slots)
	h.sayf("pool of %d × %v at %.1f times its capacity, deadline %v", slots, mean.Round(ms), factor, deadline.Round(ms))
	h.Fill = func(p *Process) {
		p.poisson(flat(factor*float64(slots)/mean.Seconds()), request(newPool(slots), 0, service, deadline))
	}
}

func (h *hole) standstill() {
	slots, mean, load, long := int(h.one(8, 4, 20, 100)), h.seconds(0.01, 0.05), h.between(0.6, 0.85), h.seconds(3, 8)
	at := Time(h.one(10, 0, 2, 20)) * sec
	service := h.times(mean)
	h.End = 60 * sec
	h.sayf("pool of %d × %v at %.2f times its capacity stands still for %v after %v", slots, mean.Round(ms), load, long.Round(ms), at)
	h.Fill = func(p *Process) {
		b := newPool(slots)
		b.stalls = []span{{at, at + long}}
		p.poisson(flat(load*float64(slots)/mean.Seconds()), request(b, 0, service, 30*sec))
	}
}

func (h *hole) slower() {
	mean, inService, factor := h.seconds(2.5, 7), h.between(10, 200), h.between(1.6, 3)
	service := h.times(mean)
	h.End, h.Grace = 40*mean, 20*mean
	h.sayf("no queue, %.0f in service for %v, which becomes %.1f times slower", inService, mean.Round(ms), factor)
	h.Fill = func(p *Process) {
		b := noQueue()
		p.slower(b, span{13 * mean, 26 * mean}, factor)
		p.poisson(flat(inService/mean.Seconds()), request(b, 0, service, 10*Time(factor*float64(mean))))
	}
}

func (h *hole) inTime() {
	slots, mean, factor := int(h.one(10, 3, 30)), h.seconds(0.5, 3), h.between(1.5, 2.2)
	service := h.times(mean)
	clients, deadline := int(factor*float64(slots)), Time(h.between(3, 8)*float64(mean))
	if d := Time(1.5 * factor * float64(mean)); h.rng == nil || deadline < d {
		deadline = d
	}
	h.End, h.Grace = 60*mean, 20*mean
	h.sayf("pool of %d × %v, %d clients, each of which waits for its answer, deadline %v", slots, mean.Round(ms), clients, deadline.Round(ms))
	h.Fill = func(p *Process) {
		b := newPool(slots)
		for range clients {
			p.loop(exponential(mean/10), request(b, 0, service, deadline))
		}
	}
}

func (h *hole) burst() {
	slots, mean, load := int(h.one(8, 20, 100)), h.seconds(0.01, 0.1), h.between(0.4, 0.7)
	capacity := float64(slots) / mean.Seconds()
	queue := h.seconds(0.5, 2) // what is left of the burst drains in so long
	service := h.times(mean)
	deadline := max(3*queue, h.seconds(2, 10))
	h.End = 60 * sec
	h.sayf("pool of %d × %v at %.2f times its capacity; every 15 s a burst with work for %v, deadline %v",
		slots, mean.Round(ms), load, queue.Round(ms), deadline.Round(ms))
	h.Fill = func(p *Process) {
		p.poisson(bursts(15*sec, sec/2, capacity*(1+2*queue.Seconds()), load*capacity), request(newPool(slots), 0, service, deadline))
	}
}

// behind puts work that nobody waits for into the queue of a backend.
func (p *Process) behind(b *Backend, n int, service distribution) {
	rng := p.random()
	for range n {
		r := &Request{Service: service(rng), Backend: b, gone: true, left: true}
		p.forward(r)
	}
}
