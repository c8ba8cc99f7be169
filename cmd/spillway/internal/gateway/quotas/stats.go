package quotas

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed90641741/spillway/quota/fleet"
)

// Stats says how a quota stands that is shared with other proxies.
type Stats struct {
	Name      string        `json:"name"`   // of the cluster or listener
	Syncs     uint64        `json:"syncs"`  // exchanges of reports and levels that succeeded
	Errors    uint64        `json:"errors"` // that failed
	Fenced    uint64        `json:"fenced"` // that came too late, as another task led
	Leader    bool          `json:"leader"`
	Tasks     int           `json:"tasks"` // 0 without levels
	Age       time.Duration `json:"age"`   // of the levels; negative without any
	Grace     time.Duration `json:"grace"` // until the limits are divided by tasks; 0 where they are
	Conflict  bool          `json:"conflict"`
	Customers []Customer    `json:"customers"` // the listed ones with most debt, 20 at most
	// Lost says that the servers answer, but no leader has sent levels for longer than a task uses its last share.
	Lost bool `json:"lost"`
}

// A Customer is the level of a listed customer with demand, in all proxies.
type Customer struct {
	Customer string        `json:"customer"`
	Rate     float64       `json:"rate"`
	Debt     time.Duration `json:"debt"`     // at this rate
	Marginal int           `json:"marginal"` // class that is not admitted in full; -1: all are
}

// mostCustomers bounds the series of a quota in metrics.
const mostCustomers = 20

// Stats returns how the shared quotas stand at the time now, by name.
func (s *Set) Stats(now time.Time) []Stats {
	tasks := *s.found.Load()
	all := make([]Stats, 0, len(tasks))
	for _, t := range tasks {
		all = append(all, Of(now, t.name, &t.config, t.fleet.Stats(now), t.fleet, t.board))
	}
	slices.SortFunc(all, func(a, b Stats) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Of returns how a quota stands whose task has a configuration, statistics and a board.
func Of(now time.Time, name string, c *fleet.Config, f fleet.Stats, levels Leveled, b *Watched) Stats {
	return Stats{
		Name: name, Syncs: f.SyncsTotal - f.ErrorsTotal - f.FencedTotal, Errors: f.ErrorsTotal, Fenced: f.FencedTotal, Leader: f.Leader,
		Tasks: f.Tasks, Age: f.Age, Grace: f.Grace, Conflict: f.ConfigConflict, Customers: indebted(c, levels), Lost: b.LeaderLost(now, grace(c)),
	}
}

// Leveled knows the levels of customers.
type Leveled interface {
	Level(customer string) (fleet.Level, bool)
}

// grace returns the time without levels after which a task has its limit divided by tasks.
func grace(c *fleet.Config) time.Duration {
	hold := cmp.Or(c.Hold, max(2*time.Second, 10*c.Interval))
	return cmp.Or(c.Grace, 5*hold)
}

// indebted returns the listed customers with most debt in proportion to their rate.
func indebted(c *fleet.Config, levels Leveled) (all []Customer) {
	for name := range c.Limits.Customers {
		if l, ok := levels.Level(name); ok && l.Rate > 0 {
			debt := time.Duration(min(l.Debt/l.Rate, 1e6) * float64(time.Second))
			all = append(all, Customer{Customer: name, Rate: l.Rate, Debt: debt, Marginal: l.Marginal})
		}
	}
	slices.SortFunc(all, func(a, b Customer) int {
		return cmp.Or(cmp.Compare(b.Debt, a.Debt), cmp.Compare(a.Customer, b.Customer))
	})
	return slices.Clip(all[:min(len(all), mostCustomers)])
}
