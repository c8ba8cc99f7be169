package quota

import (
	"cmp"
	"slices"
	"time"
)

// key tells the claims of a group apart.
type key struct {
	name      string
	strangers bool // the claim of all strangers together
}

// claim is what one customer wants and gets of what a group shares.
type claim struct {
	key
	limit Limit
	seen  time.Time
	wants float64
	rate  float64
}

// useful returns what c wants, as far as its limit lets it.
func (c *claim) useful() float64 { return min(c.wants, c.limit.Rate) }

// group is a number of claims that share a capacity.
type group struct {
	capacity float64
	weight   float64 // of all claims
	claims   []*claim
	byKey    map[key]*claim
}

// claim returns the claim of k. A new one begins with its fair share.
func (g *group) claim(now time.Time, k key, limit Limit) *claim {
	if c := g.byKey[k]; c != nil {
		return c
	}
	if g.byKey == nil {
		g.byKey = make(map[key]*claim)
	}
	g.weight += limit.Weight
	c := &claim{key: k, limit: limit, seen: now, rate: min(limit.Rate, g.capacity*limit.Weight/g.weight)}
	g.claims = append(g.claims, c)
	g.byKey[k] = c
	return c
}

// forget drops the claims that were last seen before a time.
func (g *group) forget(stale time.Time) {
	g.claims = slices.DeleteFunc(g.claims, func(c *claim) bool {
		old := c.seen.Before(stale)
		if old {
			delete(g.byKey, c.key)
		}
		return old
	})
	g.weight = 0
	for _, c := range g.claims {
		g.weight += c.limit.Weight
	}
}

// wants returns what all claims together want.
func (g *group) wants() (sum float64) {
	for _, c := range g.claims {
		sum += c.useful()
	}
	return sum
}

// fill gives each claim its rate: what it wants, up to a common level per weight;
// a part of what nobody wants; but never less than its fair share.
func (g *group) fill() {
	slices.SortFunc(g.claims, func(a, b *claim) int {
		return cmp.Compare(a.useful()/a.limit.Weight, b.useful()/b.limit.Weight)
	})
	spare, weight := g.capacity, g.weight
	for _, c := range g.claims {
		c.rate = min(c.useful(), spare*c.limit.Weight/weight)
		spare -= c.rate
		weight -= c.limit.Weight
	}
	for _, c := range g.claims {
		part := c.limit.Weight / g.weight
		c.rate = min(c.limit.Rate, max(g.capacity*part, c.rate+max(0, spare)*part))
	}
}
