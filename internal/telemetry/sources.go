package telemetry

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// What has levels: the observers have exported interfaces with the same methods.
type (
	server interface{ Stats(time.Time) ingress.Stats }
	client interface {
		Stats(now time.Time) map[string]egress.Stats
	}
	retryBudget interface {
		Stats(now time.Time) budget.Stats
	}
	sharedQuota  interface{ Stats(time.Time) fleet.Stats }
	levelHandler = func(x *Metric, value float64, labels ...string)
	countHandler = func(x *Metric, n uint64, labels ...string)
)

// Sources are the servers, clients, budgets and quotas whose levels are reported, by names that are made
// valid UTF-8. The zero Sources is ready for use, and safe for concurrent use.
type Sources struct {
	mu      sync.Mutex
	servers map[string]server
	clients []client
	budgets map[string]retryBudget
	quotas  map[string]sharedQuota
}

// label returns a name as a label may have it: Prometheus does not report another one.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// AddServer adds a server, in place of one with the same name.
func (s *Sources) AddServer(listener string, x server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers == nil {
		s.servers = make(map[string]server)
	}
	s.servers[label(listener)] = x
}

// AddClient adds a client.
func (s *Sources) AddClient(x client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, x)
}

// AddBudget adds a budget, in place of one with the same name.
func (s *Sources) AddBudget(cluster string, x retryBudget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.budgets == nil {
		s.budgets = make(map[string]retryBudget)
	}
	s.budgets[label(cluster)] = x
}

// AddQuota adds a shared quota, in place of one with the same name.
func (s *Sources) AddQuota(name string, x sharedQuota) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quotas == nil {
		s.quotas = make(map[string]sharedQuota)
	}
	s.quotas[label(name)] = x
}

// Report reports all levels, for the given number of backends, and the counts of quotas. The lock
// is not held while they are read.
func (s *Sources) Report(backends int, report levelHandler, count countHandler) {
	s.mu.Lock()
	servers, clients, budgets, quotas := maps.Clone(s.servers), slices.Clone(s.clients), maps.Clone(s.budgets), maps.Clone(s.quotas)
	s.mu.Unlock()
	level := func(x *Metric, value float64, labels ...string) {
		if !math.IsInf(value, 0) && !math.IsNaN(value) { // no limit is no metric
			report(x, value, labels...)
		}
	}
	now := time.Now()
	for name, x := range servers {
		stats := x.Stats(now)
		serverLevels(stats, name, level)
		unlistedLevels(stats.Quota, name, level, count)
		listedLevels(stats.Quota, name, level)
	}
	for _, b := range top(clients, backends) {
		level(&InFlight, b.InFlight, "", b.Key)
		level(&Limit, b.Limit, "", b.Key)
		level(&Throttle, b.Throttle, b.Key)
	}
	for cluster, x := range budgets {
		if b := x.Stats(now); b.Capacity > 0 {
			level(&Budget, b.Tokens/b.Capacity, cluster)
		}
	}
	for name, x := range quotas {
		quotaLevels(x.Stats(now), name, level, count)
	}
}

// oneIf is the value of a metric that says whether something is so.
var oneIf = map[bool]float64{true: 1}

func quotaLevels(s fleet.Stats, name string, level levelHandler, count countHandler) {
	count(&QuotaSyncs, s.SyncsTotal-s.ErrorsTotal-s.FencedTotal, name, "ok")
	count(&QuotaSyncs, s.ErrorsTotal, name, "error")
	count(&QuotaSyncs, s.FencedTotal, name, "fenced")
	level(&QuotaLeader, oneIf[s.Leader], name)
	level(&QuotaTasks, float64(s.Tasks), name)
	level(&QuotaConflict, oneIf[s.ConfigConflict], name)
	level(&QuotaGrace, s.Grace.Seconds(), name)
	if s.Age >= 0 {
		level(&QuotaAge, s.Age.Seconds(), name)
	}
}

// unlistedLevels reports the limit of all customers together that a quota does not list.
func unlistedLevels(all []quota.CustomerStats, name string, level levelHandler, count countHandler) {
	for i := range all {
		if c := &all[i]; c.Unlisted {
			var admitted, rejected uint64
			for _, class := range c.Classes {
				admitted += class.AdmittedTotal
				rejected += class.RejectedTotal
			}
			level(&UnlistedLimit, c.Rate, name, "")
			count(&UnlistedRequests, admitted, "admitted", name, "")
			count(&UnlistedRequests, rejected, "rejected", name, "")
		}
	}
}

// MostCustomers is how many customers of a quota have levels.
const MostCustomers = 20

// listedLevels reports what the listed customers with the fullest buckets may use, and what they use. Other names may be
// made up.
func listedLevels(all []quota.CustomerStats, name string, level levelHandler) {
	listed := slices.DeleteFunc(slices.Clone(all), func(c quota.CustomerStats) bool { return !c.Known || c.Unlisted })
	slices.SortFunc(listed, func(a, b quota.CustomerStats) int {
		return cmp.Or(cmp.Compare(b.Debt, a.Debt), cmp.Compare(b.UsedRate, a.UsedRate), cmp.Compare(a.Customer, b.Customer))
	})
	for _, c := range listed[:min(len(listed), MostCustomers)] {
		level(&QuotaShare, c.Rate, label(c.Customer), name, "")
		level(&QuotaUse, c.UsedRate, label(c.Customer), name, "")
	}
}

func serverLevels(s ingress.Stats, name string, level levelHandler) {
	tightest := s.Concurrency.Tightest()
	level(&InFlight, float64(s.Shed.InFlight), name, "")
	level(&QueueLength, float64(s.Shed.Waiting+s.InFlight.Waiting+s.RateLimit.Waiting), name, "")
	level(&Utilization, s.Load.Utilization, name, "")
	level(&Limit, tightest.Limit, name, "")
	if tightest.BaseLatency > 0 {
		level(&BaseLatency, tightest.BaseLatency.Seconds(), name, "")
	}
	for _, k := range s.Costs.Keys {
		if k.Calls > 0 {
			key := label(k.Key)
			level(&Cost, k.Cost.Seconds(), name, key)
			level(&CostError, k.StandardError.Seconds(), name, key)
			level(&CostUsed, oneIf[k.Used], name, key)
		}
	}
}

// top returns the n backends that matter most.
func top(clients []client, n int) []Backend {
	var all Backends
	for _, c := range clients {
		for key, s := range c.Stats(time.Now()) {
			b := Backend{Key: key, InFlight: float64(s.InFlight.InFlight), Limit: float64(s.InFlight.MaxInFlight)}
			for class := range s.Throttle {
				b.Throttle = max(b.Throttle, s.Throttle[class].Probability)
			}
			all.Add(b)
		}
	}
	return all.Top(n)
}
