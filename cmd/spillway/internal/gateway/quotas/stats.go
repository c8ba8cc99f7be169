package quotas

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed90641741/spillway/internal/admin/quotastats"
	"github.com/seed90641741/spillway/quota/fleet"
)

// Stats says how a quota stands that is shared with other proxies.
type Stats = quotastats.Stats

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
func indebted(c *fleet.Config, levels Leveled) (all []quotastats.Customer) {
	for name := range c.Limits.Customers {
		if l, ok := levels.Level(name); ok && l.Rate > 0 {
			debt := time.Duration(min(l.Debt/l.Rate, 1e6) * float64(time.Second))
			all = append(all, quotastats.Customer{Customer: name, Rate: l.Rate, Debt: debt, Marginal: l.Marginal})
		}
	}
	slices.SortFunc(all, func(a, b quotastats.Customer) int {
		return cmp.Or(cmp.Compare(b.Debt, a.Debt), cmp.Compare(a.Customer, b.Customer))
	})
	return slices.Clip(all[:min(len(all), mostCustomers)])
}
