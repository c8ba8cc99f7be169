package spilladmin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/customers"
	"github.com/seed90641741/spillway/internal/admin/quotastats"
)

// mostBackends is how many backends of clients are shown: a client may have a thousand.
const mostBackends = 20

// sources are what the program has added. It implements [admin.Source].
type sources struct {
	mu      sync.Mutex
	servers map[string]Server
	clients []Client
	budgets map[string]Budget
	quotas  map[string]Quota
}

func put[T any](s *sources, all *map[string]T, name string, x T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *all == nil {
		*all = make(map[string]T)
	}
	(*all)[name] = x
}

func (s *sources) addClient(c Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, c)
}

// Ready implements [admin.Source].
func (*sources) Ready() error { return nil }

// Levels implements [admin.Source]. The lock is not held while levels are read.
func (s *sources) Levels(now time.Time) (l admin.Levels) {
	s.mu.Lock()
	servers, clients, budgets, quotas := maps.Clone(s.servers), slices.Clone(s.clients), maps.Clone(s.budgets), maps.Clone(s.quotas)
	s.mu.Unlock()
	var modes []spillway.Mode
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		read(&l, "server "+name, func() {
			stats := servers[name].Stats(now)
			l.Gates = append(l.Gates, gateOf(name, &stats))
			l.Customers = append(l.Customers, customers.Of(name, "", stats.Quota)...)
			modes = append(modes, stats.Modes.RateLimit, stats.Modes.Quota, stats.Modes.InFlight, stats.Modes.Shed)
		})
	}
	l.Customers, l.Mode = customers.Top(l.Customers), modeOf(modes)
	backends := make(map[string]*admin.Cluster)
	for _, c := range clients {
		read(&l, "client", func() { addBackends(backends, c.Stats(now)) })
	}
	for name, b := range budgets {
		read(&l, "budget "+name, func() {
			if stats := b.Stats(now); stats.Capacity > 0 {
				clusterOf(backends, name).Budget = &admin.Budget{Left: stats.Tokens, Capacity: stats.Capacity}
			}
		})
	}
	l.Clusters = top(backends)
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		read(&l, "quota "+name, func() { l.Quotas = append(l.Quotas, quotaOf(name, quotas[name], now)) })
	}
	return l
}

// read reads what the program has added. A Stats method that panics ends neither the program nor the page, which says so.
func read(l *admin.Levels, what string, f func()) {
	defer func() {
		if x := recover(); x != nil {
			l.Notices = append(l.Notices, admin.Notice{
				Subject: what, Headline: "The levels of the " + what + " cannot be read.", Text: fmt.Sprintf("Its method Stats panics: %.200v.", x),
			})
		}
	}()
	f()
}

// gateOf returns the levels of a server. Requests that wait for their client, or have been at work for very long, are not in
// flight.
func gateOf(name string, s *ingress.Stats) admin.Gate {
	g := admin.GateOf(name, "", s)
	g.InFlight = max(s.Shed.InFlight, s.InFlight.InFlight)
	g.Peak = g.InFlight + g.Waiting
	return g
}

// modeOf returns enforce if a gate enforces, observe if one only observes, and off if none does either. A program without
// servers has clients that enforce.
func modeOf(modes []spillway.Mode) spillway.Mode {
	if len(modes) == 0 {
		return spillway.ModeEnforce
	}
	return slices.Min(modes)
}

func clusterOf(all map[string]*admin.Cluster, name string) *admin.Cluster {
	if all[name] == nil {
		all[name] = &admin.Cluster{Name: name, Endpoints: []admin.Endpoint{}}
	}
	return all[name]
}

// addBackends adds the levels of a client's backends. Several clients may have the same.
func addBackends(all map[string]*admin.Cluster, stats map[string]egress.Stats) {
	for key, s := range stats {
		x := clusterOf(all, key)
		x.InFlight += s.InFlight.InFlight
		x.MaxInFlight += s.InFlight.MaxInFlight
		for class := range x.Throttle {
			x.Throttle[class] = max(x.Throttle[class], s.Throttle[class].Probability)
		}
	}
}

// top returns the backends that matter most.
func top(all map[string]*admin.Cluster) (most []admin.Cluster) {
	for _, x := range all {
		most = append(most, *x)
	}
	slices.SortFunc(most, func(a, b admin.Cluster) int {
		return cmp.Or(cmp.Compare(slices.Max(b.Throttle[:]), slices.Max(a.Throttle[:])), cmp.Compare(b.InFlight, a.InFlight), cmp.Compare(a.Name, b.Name))
	})
	return most[:min(len(most), mostBackends)]
}

func quotaOf(name string, q Quota, now time.Time) quotastats.Stats {
	s := q.Stats(now)
	return quotastats.Stats{
		Name: name, Syncs: s.SyncsTotal - s.ErrorsTotal - s.FencedTotal, Errors: s.ErrorsTotal, Fenced: s.FencedTotal,
		Leader: s.Leader, Tasks: s.Tasks, Age: s.Age, Grace: s.Grace, Conflict: s.ConfigConflict,
	}
}
