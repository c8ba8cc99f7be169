package gateway

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/balance"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/httpproxy"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/logs"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/customers"
	"github.com/seed90641741/spillway/internal/admin/finite"
	"github.com/seed90641741/spillway/internal/admin/resets"
	"github.com/seed90641741/spillway/tune"
)

// Levels returns the levels of a proxy at the time now, and the state of its access log. The configuration is
// in use, and has its defaults.
func Levels(p *Proxy, c *config.Config, now time.Time) (l admin.Levels, access logs.Stats) {
	s := p.Stats(now)
	l.Mode, l.Quotas = c.Mode.Or(spillway.ModeObserve), s.Quotas
	for i := range c.Listeners {
		if x, ok := s.Listeners[c.Listeners[i].Name]; ok {
			level := listenerLevel(p, c.Listeners[i].Name, x.Open, s.Resets[c.Listeners[i].Name])
			level.Clients = new(admin.Clients(s.Clients[c.Listeners[i].Name]))
			l.Listeners = append(l.Listeners, level)
		}
	}
	mongo(&l, p, c, s.Mongo)
	for i := range c.Clusters {
		x := &c.Clusters[i]
		for j := range s.Gates {
			if s.Gates[j].Cluster == x.Name {
				l.Gates = append(l.Gates, gateLevel(&s.Gates[j], c.Ingress(&config.Listener{}, x)))
				l.Customers = append(l.Customers, customers.Of(s.Gates[j].Listener, x.Name, s.Gates[j].Quota)...)
			}
		}
		if stats, ok := s.Clusters[x.Name]; ok {
			level := clusterLevel(x, &stats)
			level.Costs = customers.Costs(stats.Costs)
			l.Clusters = append(l.Clusters, level)
		}
		if t, ok := s.Tuners[x.Name]; ok {
			l.Tuned = append(l.Tuned, tunedLevel(tunedName(x), &t))
		}
	}
	l.Customers = customers.Top(l.Customers)
	slices.SortStableFunc(l.Gates, func(a, b admin.Gate) int { return strings.Compare(a.Listener, b.Listener) })
	return l, s.AccessLog
}

func mongo(l *admin.Levels, p *Proxy, c *config.Config, all []mongoproxy.Stats) {
	for i := range all {
		x := &all[i]
		level := listenerLevel(p, x.Listener, x.Connections.Open, x.Resets)
		level.Mongo = true
		l.Listeners = append(l.Listeners, level)
		for _, c := range x.Counts() {
			l.Mongo = append(l.Mongo, admin.Count{Listener: x.Listener, Name: c.Name, Value: c.Value, Level: mongoproxy.IsLevel(c.Name)})
		}
		gate := mongoGate(c, x)
		l.Customers = append(l.Customers, customers.Of(x.Listener, gate.Cluster, x.Gate.Quota)...)
		l.Gates = append(l.Gates, gate)
		l.Clusters = append(l.Clusters, mongoCluster(x, &gate))
		if x.Tuner != nil {
			l.Tuned = append(l.Tuned, tunedLevel(x.Listener+" ingressRequestAdmissionRatePerSec", x.Tuner))
		}
	}
}

func tunedName(x *config.Cluster) string {
	if x.Tune != nil && x.Tune.Limit == config.TuneInFlight {
		return x.Name + " inflight.max_in_flight"
	}
	return x.Name + " rate_limit.rate"
}

func tunedLevel(name string, s *tune.Stats) admin.Tuned {
	t := admin.Tuned{Name: name, Value: finite.Number(s.Limit), Least: finite.Number(s.Min), Most: finite.Number(s.Max), Moves: []admin.Move{}}
	if !s.Enforce {
		t.Name += " (observed)"
	}
	for _, m := range slices.Backward(s.Moves) {
		why := m.Reason()
		if !m.Applied {
			why = "not made: " + why
		}
		t.Moves = append(t.Moves, admin.Move{Time: m.Time, From: finite.Number(m.From), To: finite.Number(m.To), Why: why})
	}
	return t
}

// mongoGate returns the state of a MongoDB listener's gates. The servers behind it have the name of
// the listener, which no cluster has.
func mongoGate(c *config.Config, x *mongoproxy.Stats) admin.Gate {
	g := httpproxy.GateStats{
		Listener: x.Listener, Cluster: x.Listener, Admitted: x.Admitted, InFlight: x.InFlight, Peak: x.Peak, Stats: x.Gate,
	}
	for i := range c.Mongo {
		if m := &c.Mongo[i]; m.Name == x.Listener {
			return gateLevel(&g, m.Ingress(c))
		}
	}
	return gateLevel(&g, ingress.Config{ShedMode: spillway.ModeOff, RateLimitMode: spillway.ModeOff})
}

func mongoCluster(x *mongoproxy.Stats, gate *admin.Gate) admin.Cluster {
	l := admin.Cluster{Name: gate.Cluster, InFlight: gate.InFlight, MaxInFlight: int(gate.Limit), Retries: x.Retries}
	if x.Budget.Capacity > 0 {
		l.Budget = &admin.Budget{Left: x.Budget.Tokens, Capacity: x.Budget.Capacity}
	}
	l.Endpoints = endpointLevels(x.Endpoints, false)
	return l
}

func listenerLevel(p *Proxy, name string, open int, reset resets.Counts) admin.Listener {
	l := admin.Listener{Name: name, Open: open, Rejected: reset.Total(), RejectedBy: reset}
	if a := p.Addr(name); a != nil {
		l.Address = a.String()
	}
	return l
}

// gateLevel returns the state of a gate with a configuration.
func gateLevel(g *httpproxy.GateStats, c ingress.Config) admin.Gate {
	l := admin.GateOf(g.Listener, g.Cluster, &g.Stats)
	l.Admitted, l.Unlabelled, l.InFlight, l.Peak = g.Admitted, g.Unlabelled, max(0, g.InFlight-l.Waiting), g.Peak
	if l.Adaptive {
		l.Least, l.Most = max(1, float64(c.Concurrency.MinInFlight)), max(0, float64(c.Concurrency.MaxInFlight))
	}
	return l
}

func clusterLevel(x *config.Cluster, s *upstream.Stats) admin.Cluster {
	l := admin.Cluster{Name: x.Name, InFlight: s.Egress.InFlight.InFlight, Retries: s.Retry.RetriesTotal - s.Retry.UnsentTotal}
	if x.Inflight.MaxInFlight >= 0 {
		l.MaxInFlight = s.Egress.InFlight.MaxInFlight
	}
	for class := range l.Throttle {
		l.Throttle[class] = s.Egress.Throttle[class].Probability
	}
	if s.Budget.Capacity > 0 {
		l.Budget = &admin.Budget{Left: s.Budget.Tokens, Capacity: s.Budget.Capacity}
	}
	if x.Batch != nil {
		q := s.Queue
		l.Queue = &admin.Queue{Busy: q.Busy, Places: q.Places, Waiting: q.Waiting, Waits: admin.Waits{Count: q.TurnsTotal, Total: q.Waited}}
	}
	l.Endpoints = endpointLevels(s.Endpoints, s.Panics)
	return l
}

func endpointLevels(all []upstream.EndpointStats, panics bool) (levels []admin.Endpoint) {
	for i := range all {
		e := &all[i]
		levels = append(levels, admin.Endpoint{
			Address: e.Address, InFlight: e.Busy, Attempts: e.Total, Errors: e.Errors, Answers: e.Answers, Took: e.Took, Down: downOf(e, panics),
		})
	}
	return levels
}

// downOf says why an endpoint gets no requests.
func downOf(e *upstream.EndpointStats, panics bool) string {
	switch {
	case e.Failed:
		return cmp.Or(e.Trouble, "cannot be connected to")
	case e.Health == upstream.Unhealthy && panics:
		return "unhealthy, as all are: used all the same"
	case e.Health == upstream.Unhealthy:
		return "unhealthy: " + e.Reason
	case e.State == balance.LeftOut && !panics:
		return "asked to be left alone for a while"
	case e.State == balance.Ejected && !panics:
		return "ejected for a while, as it failed more than others"
	default:
		return ""
	}
}
