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

	Customers []Customer // the listed ones with most debt, 20 at most
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
		all = append(all, Stats{t.name, t.fleet.Stats(now), t.indebted()})
	}
	slices.SortFunc(all, func(a, b Stats) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// indebted returns the listed customers with most debt in proportion to their rate.
func (t *task) indebted() (all []Customer) {
	for _, name := range t.customers {
		if l, ok := t.fleet.Level(name); ok && l.Rate > 0 {
			all = append(all, Customer{name, l})
		}
	}
	slices.SortFunc(all, func(a, b Customer) int {
		return cmp.Or(cmp.Compare(b.Debt/b.Rate, a.Debt/a.Rate), cmp.Compare(a.Name, b.Name))
	})
	return slices.Clip(all[:min(len(all), mostCustomers)])
}
