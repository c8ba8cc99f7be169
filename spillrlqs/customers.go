package spillrlqs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

// classCalls counts calls by class.
type classCalls [spillway.Criticalities]quota.ClassStats

func (t *classCalls) add(class int, calls quota.ClassStats) {
	t[class].AdmittedTotal += calls.AdmittedTotal
	t[class].RejectedTotal += calls.RejectedTotal
}

func (t *classCalls) addTo(sum *[spillway.Criticalities]quota.ClassStats) {
	for class, calls := range t {
		(*classCalls)(sum).add(class, calls)
	}
}

// Customers returns a line for each customer with calls that Envoys of this server report or ask for, in the order
// of names, and one for all unlisted customers together. Rate is what this server and its Envoys may use now. Rates of calls are
// those of the last reports. Debt is that of the customer over all servers, and 0 while the customer uses less
// than half of its limit. Customers allocates, and takes time for each bucket.
func (s *Server) Customers(now time.Time) []quota.CustomerStats {
	var unlisted []quota.CustomerStats
	all := make(map[string]*quota.CustomerStats)
	for _, c := range s.gate.Stats(now) {
		if c.Unlisted {
			unlisted = append(unlisted, c)
		} else {
			all[c.Customer] = &c
		}
	}
	for _, t := range s.open() {
		t.addCustomers(all)
	}
	cfg := s.cfg.Load()
	window := max(1, cfg.Fleet.BurstSeconds, 5*cfg.Fleet.Interval.Seconds()) // as in package fleet
	for name, c := range all {
		if _, c.Known = cfg.Fleet.Limits.Customers[name]; !c.Known {
			continue
		}
		c.Debt = 0
		if l, ok := s.fleet.Level(name); ok && l.Rate > 0 {
			c.Debt = l.Debt / max(l.Rate*window, 1)
		}
	}
	maps.DeleteFunc(all, func(_ string, c *quota.CustomerStats) bool {
		return c.Classes == [spillway.Criticalities]quota.ClassStats{}
	})
	lines := slices.SortedFunc(maps.Values(all), func(a, b *quota.CustomerStats) int { return cmp.Compare(a.Customer, b.Customer) })
	for _, c := range lines {
		unlisted = append(unlisted, *c)
	}
	return unlisted
}

// addCustomers adds the use of a stream's customers.
func (t *stream) addCustomers(all map[string]*quota.CustomerStats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.order {
		line := all[c.name]
		if line == nil {
			line = &quota.CustomerStats{Customer: c.name}
			all[c.name] = line
		}
		line.Limit, line.Setting = c.grant.Limit, c.grant.Setting
		line.Rate += c.grant.Rate
		for _, b := range c.buckets {
			line.Wants += b.rate
			line.AdmittedRate += b.uses
			line.RejectedRate += max(0, b.rate-b.uses)
		}
		c.calls.addTo(&line.Classes)
	}
}
