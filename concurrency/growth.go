package concurrency

import "math"

// A queue delays every request in it by the same time. So the requests of two keys wait for the same thing if the latency
// of both grows alike with the number that they found in flight.

// growth is how latency grows with what requests found in flight, of all keys that are not apart.
type growth struct {
	n          float64 // requests, less one for each mean
	xx, xy, yy float64 // squares and products about the means: x is in flight, y latency
}

func (g *growth) add(o growth) {
	g.n += o.n
	g.xx += o.xx
	g.xy += o.xy
	g.yy += o.yy
}

// slope returns the seconds that one more in flight adds.
func (g *growth) slope() float64 { return g.xy / max(g.xx, 1e-9) }

// deviation returns the standard error of the slope. It is never 0.
func (g *growth) deviation() float64 {
	rest := max(g.yy-float64(g.xy*g.slope()), 1e-12*g.yy, 1e-300)
	return math.Sqrt(rest / (g.n - 1) / max(g.xx, 1e-9))
}

// sure reports whether the slope is known well enough to compare it with another one.
func (g *growth) sure(slope float64) bool {
	return g.n >= group && distinct*g.deviation() < slope
}

// differs reports whether the slope is known, and not between half and double of another one.
func (g *growth) differs(slope float64) bool {
	return g.sure(slope) && (g.slope() <= slope/doubled || g.slope() >= slope*doubled)
}

// same reports whether the slope is certainly between half and double of another one.
func (g *growth) same(slope float64) bool {
	margin := float64(distinct * g.deviation())
	return g.n >= group && g.slope()-margin > slope/doubled && g.slope()+margin < slope*doubled
}

// common is how latency grew with what requests found in flight of all keys, in this round of these and the last one. All keys begin
// a round at the same time, so that they are comparable.
type common struct {
	generation int  // of the rounds of all keys
	known      bool // what the lines show, while it is
	rounds     [2]fit
}

// learn takes in a latency, and what the request found in flight.
func (c *common) learn(found, took float64) {
	if !c.known {
		c.rounds[c.generation&1].add(found, took)
	}
}

// growth returns that of this generation and the one before.
func (c *common) growth(generation int) (g growth) {
	c.keepUp(generation)
	for i := range c.rounds {
		g.add(c.rounds[i].growth())
	}
	return g
}

// keepUp forgets what is older than the generation before.
func (c *common) keepUp(generation int) {
	for c.generation = max(c.generation, generation-2); c.generation < generation; c.generation++ {
		c.rounds[(c.generation+1)&1] = fit{}
	}
}

// points returns how many requests a key has in growth.
func (c *common) points() float64 { return c.rounds[0].n + c.rounds[1].n }
