package sim

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

// levelStreams is the first of the streams that draw levels. They are apart from all others.
const levelStreams = 1 << 32

// A group is clients that are alike.
type group struct {
	*Sim

	config   *Clients
	index    uint32
	edge     *edge
	arrivals *stream                // times
	choice   *stream                // clients, classes, thinking
	traced   int                    // arrivals of the trace that were made
	levels   *stream                // of tasks
	classes  []spillway.Criticality // that have a share
	shares   float64                // of all of them

	sums   []windowScore // by window
	series []Counts      // by the intended start of calls; attempts when they were sent
	p50    []*float64    // of answers, by slot
	p99    []*float64
	answer histogram // of the slot
}

func (s *Sim) newGroup(c *Clients) *group {
	g := &group{
		Sim: s, config: c, index: uint32(len(s.groups)), arrivals: s.stream(), choice: s.stream(),
		levels: newStream(s.config.Seed, levelStreams+uint64(len(s.groups))),
		sums:   make([]windowScore, len(s.config.Windows)), series: make([]Counts, s.slots),
	}
	for i, share := range c.Classes {
		if g.shares += share; share > 0 {
			g.classes = append(g.classes, spillway.Criticality(i)+spillway.Sheddable)
		}
	}
	g.edge = s.newEdge(&c.Call, c.Count, g)
	return g
}

// start schedules the first calls.
func (g *group) start() {
	if !g.config.Loop {
		g.next()
		return
	}
	for i := range g.config.Count {
		g.push(g.config.Think.draw(g.choice), think, ref{uint32(i), g.index})
	}
}

// next schedules the next call of an open loop.
func (g *group) next() {
	if t := g.config.Trace; t != nil {
		if g.traced < len(t) {
			g.push(int64(t[g.traced])-g.now, arrive, ref{id: g.index})
			g.traced++
		}
		return
	}
	if at := g.poisson(); at < int64(g.Sim.config.Duration) {
		g.push(at-g.now, arrive, ref{id: g.index})
	}
}

// poisson returns the time of the next arrival: when as many are expected since now
// as an exponential of mean 1 says.
func (g *group) poisson() int64 {
	const second = float64(time.Second)
	left, at := g.arrivals.exponential(), g.now
	for {
		rate, until := g.rateAt(at)
		need := left / rate * second // no number, or infinite, without a rate
		if need < float64(until-at) {
			return at + int64(math.Ceil(need))
		}
		if until == math.MaxInt64 {
			return until
		}
		left -= float64(float64(until-at) / second * rate)
		left, at = max(left, 0), until
	}
}

// rateAt returns the rate at a time, and until when it lasts.
func (g *group) rateAt(at int64) (rate float64, until int64) {
	rate, until = g.config.Rate, math.MaxInt64
	for _, r := range g.config.Rates {
		if int64(r.At) > at {
			return rate, int64(r.At)
		}
		rate = r.Rate
	}
	return rate, until
}

// arrived makes a call of an open loop, and schedules the next one.
func (g *group) arrived() {
	g.next()
	client := 0
	if g.config.Count > 1 {
		client = g.choice.below(g.config.Count)
	}
	g.call(int32(client), false)
}

// call makes a call of a client, which calls again after it if it is in a loop.
func (g *group) call(client int32, again bool) {
	what := spillway.Call{Customer: g.config.Customer, Criticality: g.class(), Level: spillway.Level(g.levels.below(spillway.Levels) + 1)}
	if g.config.Deadline > 0 {
		what.Deadline = g.clock.Add(g.config.Deadline)
	}
	g.edge.begin(client, what, ref{}, again)
}

// class returns the criticality of the next call. It draws only where there are several.
func (g *group) class() spillway.Criticality {
	last := len(g.classes) - 1
	if last == 0 {
		return g.classes[0]
	}
	x := float64(g.choice.float() * g.shares)
	for _, c := range g.classes[:last] {
		share := g.config.Classes[c.Index()]
		if x < share {
			return c
		}
		x -= share
	}
	return g.classes[last]
}
