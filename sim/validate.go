package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/retry"
)

// The most that a Config may ask for.
const (
	maxSlots   = 100_000
	maxClients = 10_000_000
	maxTasks   = 100_000
	maxWindows = 32
	maxEach    = 200        // groups, services, faults, edges of a service
	maxCells   = 10_000_000 // slots of all series
)

// withDefaults returns c with its zero fields filled, or an error that wraps a
// [spillway.FieldError].
func (c Config) withDefaults() (Config, error) {
	c.Step = cmp.Or(c.Step, time.Second)
	if len(c.Windows) == 0 {
		c.Windows = []Window{{Name: "all"}}
	}
	c.Windows, c.Clients = slices.Clone(c.Windows), slices.Clone(c.Clients)
	c.Services, c.Faults = slices.Clone(c.Services), slices.Clone(c.Faults)
	var v checker
	v.mustf(c.Duration >= time.Millisecond && c.Duration <= maxTime, "Duration", c.Duration, "1ms to a year")
	v.mustf(c.Step >= time.Millisecond, "Step", c.Step, "1ms or more")
	v.mustf(c.Duration/c.Step < maxSlots, "Step", c.Step, "so long that there are at most %d in Duration", maxSlots)
	v.mustf(len(c.Clients) > 0 && len(c.Clients) <= maxEach, "Clients", len(c.Clients), "1 to 200")
	v.mustf(len(c.Services) > 0 && len(c.Services) <= maxEach, "Services", len(c.Services), "1 to 200")
	v.count("Faults", len(c.Faults), maxEach)
	v.windows(&c)
	v.names(&c)
	for i := range c.Services {
		v.service(&c, i)
	}
	for i := range c.Clients {
		v.clients(&c, i)
	}
	for i := range c.Faults {
		v.fault(&c, i)
	}
	v.mustf(v.callers <= maxClients, "Clients", v.callers, "at most %d together", maxClients)
	v.mustf(v.tasks <= maxTasks, "Services", v.tasks, "at most %d tasks together", maxTasks)
	if v.err != nil {
		return c, v.err
	}
	v.circles(&c)
	series := len(c.Clients) + len(c.Services)
	v.mustf(int(c.Duration/c.Step) < maxCells/series, "Step", c.Step, "so long that %d series have at most %d slots together", series, maxCells)
	return c, v.err
}

// Validate returns an error for the first field that is wrong. It wraps a
// [spillway.FieldError], whose path is such as Clients[0].Call.Egress.Throttle.K.
func (c Config) Validate() error {
	_, err := c.withDefaults()
	return err
}

func (c *checker) windows(config *Config) {
	c.count("Windows", len(config.Windows), maxWindows)
	for i := range config.Windows {
		w, at := &config.Windows[i], fmt.Sprintf("Windows[%d]", i)
		w.To = cmp.Or(w.To, config.Duration)
		c.mustf(w.Name != "", at+".Name", w.Name, "a name")
		c.mustf(w.From >= 0 && w.From < w.To, at+".From", w.From, "0 to before To (%v)", w.To)
		c.mustf(w.To <= config.Duration, at+".To", w.To, "at most Duration (%v)", config.Duration)
		same := slices.IndexFunc(config.Windows[:i], func(o Window) bool { return o.Name == w.Name })
		c.mustf(same < 0, at+".Name", w.Name, "different from the others")
	}
}

// names checks that every group and service has a different name.
func (c *checker) names(config *Config) {
	seen := map[string]bool{}
	check := func(field, name string) {
		c.mustf(name != "" && !strings.ContainsAny(name, ". \t\n@"), field, name, "a name without dots and blanks")
		c.mustf(!seen[name], field, name, "different from the others")
		seen[name] = true
	}
	for i := range config.Services {
		check(fmt.Sprintf("Services[%d].Name", i), config.Services[i].Name)
	}
	for i := range config.Clients {
		check(fmt.Sprintf("Clients[%d].Name", i), config.Clients[i].Name)
	}
}

func (c *Config) service(name string) int {
	return slices.IndexFunc(c.Services, func(s Service) bool { return s.Name == name })
}

func (c *checker) service(config *Config, i int) {
	s, at := &config.Services[i], fmt.Sprintf("Services[%d]", i)
	s.Tasks = cmp.Or(s.Tasks, 1)
	s.Processors = cmp.Or(s.Processors, 1)
	s.OnFailure = cmp.Or(s.OnFailure, DontRetry)
	s.Discipline = cmp.Or(s.Discipline, FIFO)
	s.Memory.Restart = cmp.Or(s.Memory.Restart, 10*time.Second)
	if s.Ingress != nil && s.Rejection == 0 {
		s.Rejection = examining
	}
	c.count(at+".Tasks", s.Tasks, maxTasks)
	c.tasks += s.most()
	c.autoscale(s, at+".Autoscale")
	c.count(at+".Processors", s.Processors, 1024)
	c.count(at+".Slots", s.Slots, 1e6)
	c.count(at+".Queue", s.Queue, 1e9)
	c.dist(at+".CPU", s.CPU)
	c.dist(at+".Wait", s.Wait)
	c.time(at+".Rejection", s.Rejection)
	c.time(at+".Connect", s.Connect)
	c.time(at+".Memory.Restart", s.Memory.Restart)
	c.number(at+".Memory.Limit", s.Memory.Limit)
	c.number(at+".Memory.Base", s.Memory.Base)
	c.number(at+".Memory.PerRequest", s.Memory.PerRequest)
	c.word(at+".OnFailure", s.OnFailure, DontRetry, Retryable, Degrade)
	c.word(at+".Discipline", s.Discipline, FIFO, LIFO, Priority)
	c.count(at+".Calls", len(s.Calls), maxEach)
	s.Calls = slices.Clone(s.Calls)
	for j := range s.Calls {
		c.edge(config, &s.Calls[j], fmt.Sprintf("%s.Calls[%d]", at, j))
	}
	c.ingress(s, at)
	_, err := newCore(s, newStream(0, 0), new(task))
	c.policy(at, err)
}

func (c *checker) autoscale(s *Service, at string) {
	a := &s.Autoscale
	if *a == (Autoscaler{}) {
		return
	}
	a.Start = cmp.Or(a.Start, 30*time.Second)
	c.mustf(a.Max >= s.Tasks && a.Max <= maxTasks, at+".Max", a.Max, "Tasks (%d) to %d", s.Tasks, maxTasks)
	c.time(at+".Start", a.Start)
	c.number(at+".CPU", a.CPU)
	c.number(at+".InFlight", a.InFlight)
	c.number(at+".Offered", a.Offered)
	c.number(at+".Overload", a.Overload)
}

func (c *checker) ingress(s *Service, at string) {
	if s.Ingress == nil {
		c.mustf(!s.LearnCosts, at+".LearnCosts", s.LearnCosts, "false where there is no Ingress")
		c.mustf(s.Customers == nil, at+".Customers", s.Customers, "nil where there is no Ingress")
		c.mustf(!s.AcceptRatio, at+".AcceptRatio", s.AcceptRatio, "false where there is no Ingress")
		return
	}
	c.mustf(s.Queue == 0, at+".Queue", s.Queue, "0 where there is an Ingress")
	targets := s.Ingress.Load.Targets
	c.mustf(targets.CPU >= 0 && targets.CPU <= 1, at+".Ingress.Load.Targets.CPU", targets.CPU, "0 to 1")
	c.mustf(targets.Memory <= 1, at+".Ingress.Load.Targets.Memory", targets.Memory, "at most 1")
	c.enforces(at+".Ingress.RateLimitMode", s.Ingress.RateLimitMode)
	c.enforces(at+".Ingress.QuotaMode", s.Ingress.QuotaMode)
	c.enforces(at+".Ingress.InFlightMode", s.Ingress.InFlightMode)
	c.enforces(at+".Ingress.ShedMode", s.Ingress.ShedMode)
	c.mustf(!s.LearnCosts || s.Customers != nil, at+".LearnCosts", s.LearnCosts, "false where there are no Customers")
	at += ".Ingress"
	c.unset(s.Ingress.Quota.Allocator == nil, at+".Quota.Allocator")
	c.unset(s.Ingress.Costs == nil, at+".Costs")
	c.unset(s.Ingress.Load.Signals == nil, at+".Load.Signals")
	c.unset(s.Ingress.Exempt == nil, at+".Exempt")
	c.unset(s.Ingress.Rand == nil, at+".Rand")
	c.unset(s.Ingress.Shed.Rand == nil, at+".Shed.Rand")
	c.unset(s.Ingress.Observer == nil, at+".Observer")
}

func (c *checker) clients(config *Config, i int) {
	g, at := &config.Clients[i], fmt.Sprintf("Clients[%d]", i)
	g.Count = cmp.Or(g.Count, 1)
	g.Useful = cmp.Or(g.Useful, g.Deadline)
	g.CPUFactor = cmp.Or(g.CPUFactor, 1)
	c.number(at+".CPUFactor", g.CPUFactor)
	c.count(at+".Count", g.Count, maxClients)
	c.callers += g.Count
	c.rate(at+".Rate", g.Rate)
	c.time(at+".Deadline", g.Deadline)
	c.time(at+".Useful", g.Useful)
	c.dist(at+".Think", g.Think)
	for j, r := range g.Rates {
		c.rate(fmt.Sprintf("%s.Rates[%d].Rate", at, j), r.Rate)
		c.mustf(r.At >= 0 && (j == 0 || r.At > g.Rates[j-1].At), fmt.Sprintf("%s.Rates[%d].At", at, j), r.At, "after the one before")
	}
	for j, t := range g.Trace {
		c.mustf(t >= 0 && (j == 0 || t >= g.Trace[j-1]), fmt.Sprintf("%s.Trace[%d]", at, j), t, "not before the one before")
	}
	c.mustf(!g.Loop || g.Rate == 0 && g.Rates == nil && g.Trace == nil, at+".Loop", g.Loop, "false where there is a Rate or a Trace")
	c.mustf(g.Trace == nil || g.Rate == 0 && g.Rates == nil, at+".Trace", g.Trace, "nil where there is a Rate")
	total := 0.0
	for j, share := range g.Classes {
		c.number(fmt.Sprintf("%s.Classes[%d]", at, j), share)
		total += share
	}
	if total == 0 {
		g.Classes[spillway.Critical.Index()] = 1
	}
	c.edge(config, &g.Call, at+".Call")
	c.mustf(g.Call.Times == 1, at+".Call.Times", g.Call.Times, "0 or 1: the calls of clients are their tasks")
}

// rate checks a rate of calls. Times are whole nanoseconds, to which those of faster calls cannot be rounded.
func (c *checker) rate(field string, v float64) { c.mustf(v >= 0 && v <= 1e7, field, v, "0 to 1e7") }

func (c *checker) edge(config *Config, e *Edge, at string) {
	e.Balance = cmp.Or(e.Balance, Random)
	e.Kind = cmp.Or(e.Kind, spillway.KindRead)
	e.Times = cmp.Or(e.Times, 1)
	e.Retry.Strategy = cmp.Or(e.Retry.Strategy, Budgeted)
	to := config.service(e.To)
	if to < 0 {
		c.mustf(false, at+".To", e.To, "the name of a service")
		return
	}
	tasks := max(config.Services[to].most(), 1)
	c.time(at+".Timeout", e.Timeout)
	c.count(at+".Connections", e.Connections, 1e9)
	c.count(at+".Times", e.Times, 1000)
	c.dist(at+".Latency", e.Latency)
	c.mustf(e.Loss >= 0 && e.Loss <= 1, at+".Loss", e.Loss, "0 to 1")
	c.word(at+".Balance", e.Balance, Random, RoundRobin, LeastBusy)
	c.count(at+".Subset", e.Subset, tasks)
	e.Subset = cmp.Or(e.Subset, tasks)
	c.mustf(e.Subset <= 64 || config.Services[to].Connect == 0, at+".Subset", e.Subset, "at most 64 where there is a Connect")
	c.mustf(len(e.Egress.MaxInFlightByKey) == 0, at+".Egress.MaxInFlightByKey", e.Egress.MaxInFlightByKey, "nil: all calls of an edge have one key")
	c.mustf(e.Egress.Hedge == (retry.HedgeConfig{}), at+".Egress.Hedge", e.Egress.Hedge, "zero: the simulator does not hedge")
	c.unset(e.Egress.Retry == nil, at+".Egress.Retry")
	c.unset(e.Egress.InFlight == nil, at+".Egress.Inflight")
	c.unset(e.Egress.Observer == nil, at+".Egress.Observer")
	c.unset(e.Egress.Throttle.Rand == nil, at+".Egress.Throttle.Rand")
	_, err := egress.New(e.Egress)
	c.policy(at+".Egress", err)
	_, err = e.Retry.strategy(retry.Unlimited{}, nil)
	c.policy(at+".Retry", err)
	_, err = budget.New(e.Retry.bucket())
	c.mustf(err == nil || e.Retry.Budget != nil, at+".Retry.Budgeted.Ratio", e.Retry.Budgeted.Ratio, "at most 1e6")
	c.policy(at+".Retry.Budget", err)
}

func (c *checker) fault(config *Config, i int) {
	f, at := &config.Faults[i], fmt.Sprintf("Faults[%d]", i)
	c.word(at+".Kind", f.Kind, Outage, Hang, Drop, Reject, Slow, Lose, Expensive, Herd)
	c.time(at+".At", f.At)
	c.time(at+".For", f.For)
	c.foreign(f, at)
	if f.Kind == Herd {
		known := slices.ContainsFunc(config.Clients, func(g Clients) bool { return g.Name == f.Clients })
		c.mustf(known, at+".Clients", f.Clients, "the name of clients")
		c.count(at+".Calls", f.Calls, maxClients)
		return
	}
	to := config.service(f.Service)
	c.mustf(to >= 0, at+".Service", f.Service, "the name of a service")
	if to >= 0 {
		c.count(at+".Tasks", f.Tasks, config.Services[to].Tasks)
		f.Tasks = cmp.Or(f.Tasks, config.Services[to].Tasks)
	}
	c.mustf(f.Kind != Slow || f.Factor > 0 && f.Factor <= 1e6, at+".Factor", f.Factor, "above 0 and at most 1e6")
	c.mustf(f.Kind != Expensive || f.Cost > 0 && f.Cost <= maxTime, at+".Cost", f.Cost, "above 0 and at most a year")
}

// foreign rejects fields that a fault of this kind does not have: they would be ignored.
func (c *checker) foreign(f *Fault, at string) {
	zero := func(field string, value any, is bool, kind FaultKind) {
		c.mustf(is || f.Kind == kind, at+"."+field, value, "0 where Kind is %s: it is for %s", f.Kind, kind)
	}
	zero("Factor", f.Factor, f.Factor == 0, Slow)
	zero("Cost", f.Cost, f.Cost == 0, Expensive)
	zero("Calls", f.Calls, f.Calls == 0, Herd)
	c.mustf(f.Clients == "" || f.Kind == Herd, at+".Clients", f.Clients, "empty where Kind is %s: it is for %s", f.Kind, Herd)
	c.mustf(f.Service == "" || f.Kind != Herd, at+".Service", f.Service, "empty where Kind is %s, which has Clients", Herd)
	c.mustf(f.Tasks == 0 || f.Kind != Herd, at+".Tasks", f.Tasks, "0 where Kind is %s, which has Clients", Herd)
}

// circles rejects services whose calls form a cycle.
func (c *checker) circles(config *Config) {
	done := make([]bool, len(config.Services))
	var visit func(i int, way []string)
	visit = func(i int, way []string) {
		s := &config.Services[i]
		way = append(way, s.Name)
		for j := range s.Calls {
			to := s.Calls[j].To
			c.mustf(!slices.Contains(way, to), fmt.Sprintf("Services[%d].Calls[%d].To", i, j), to,
				"a service that does not call this one: %s", strings.Join(append(way, to), " → "))
			if next := config.service(to); c.err == nil && !done[next] {
				visit(next, way)
			}
		}
		done[i] = true
	}
	for i := range config.Services {
		visit(i, nil)
	}
}
