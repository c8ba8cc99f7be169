package quotas

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed90641741/spillway/quota/fleet"
)

// Stats says how one shared quota stands.
type Stats struct {
	Name string // of the cluster or listener
	fleet.Stats

	// LeaderLost says that the servers answer, but no leader has sent levels for longer than a task
	// uses its last share.
	LeaderLost bool
	Customers  []Customer // the listed ones with most debt, 20 at most
}

// A Customer is a listed customer with demand.
type Customer struct {
	Name string
	fleet.Level
}

// mostCustomers bounds the series of a quota in metrics.
const mostCustomers = 20

// Stats returns how the shared quotas stand at the time now, by name.
func (s *Set) Stats(now time.Time) []Stats {
	tasks := *s.found.Load()
	all := make([]Stats, 0, len(tasks))
	for _, t := range tasks {
		x := Stats{Name: t.name, Stats: t.fleet.Stats(now), Customers: t.indebted()}
		x.LeaderLost = t.board.LeaderLost(now, t.grace())
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b Stats) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// grace returns the time without levels after which a task has its limit divided by tasks.
func (t *task) grace() time.Duration {
	hold := cmp.Or(t.config.Hold, max(2*time.Second, 10*t.config.Interval))
	return cmp.Or(t.config.Grace, 5*hold)
}

// indebted returns the listed customers with most debt in proportion to their rate.
func (t *task) indebted() (all []Customer) {
	for name := range t.config.Limits.Customers {
		if l, ok := t.fleet.Level(name); ok && l.Rate > 0 {
			all = append(all, Customer{name, l})
		}
	}
	slices.SortFunc(all, func(a, b Customer) int {
		return cmp.Or(cmp.Compare(b.Debt/b.Rate, a.Debt/a.Rate), cmp.Compare(a.Name, b.Name))
	})
	return slices.Clip(all[:min(len(all), mostCustomers)])
}
