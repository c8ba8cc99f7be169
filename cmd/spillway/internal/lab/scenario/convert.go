package scenario

import (
	"fmt"
	"slices"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/sim"
	"github.com/seed90641741/spillway/throttle"
)

// config is the system of f. What is wrong with it sim.New says, but for what only
// files have.
func (f *File) config() (sim.Config, error) {
	c := sim.Config{Seed: f.Seed, Duration: f.Duration, Step: f.Step}
	if c.Seed == 0 {
		c.Seed = 1
	}
	for _, w := range f.Windows {
		c.Windows = append(c.Windows, sim.Window(w))
	}
	for i, fault := range f.Faults {
		if f.Duration > 0 && fault.At >= f.Duration {
			return c, &fieldError{fmt.Sprintf("faults[%d].at", i), fmt.Sprintf("is %v, must be before the end (%v)", fault.At, f.Duration)}
		}
		c.Faults = append(c.Faults, sim.Fault(fault))
	}
	for i := range f.Services {
		s, err := f.Services[i].config(fmt.Sprintf("services[%d]", i))
		if err != nil {
			return c, err
		}
		c.Services = append(c.Services, s)
	}
	for i := range f.Clients {
		g, err := f.Clients[i].config(fmt.Sprintf("clients[%d]", i))
		if err != nil {
			return c, err
		}
		c.Clients = append(c.Clients, g)
	}
	return c, nil
}

func (c *Clients) config(at string) (sim.Clients, error) {
	call, err := c.Call.config(at + ".call")
	g := sim.Clients{
		Name: c.Name, Count: c.Count, Rate: c.Rate, Trace: c.Trace, Loop: c.Loop, Think: c.Think,
		Deadline: c.Deadline, Useful: c.Useful, Classes: c.Classes.array(), Customer: c.Customer, Call: call,
	}
	for _, r := range c.Rates {
		g.Rates = append(g.Rates, sim.Rate(r))
	}
	return g, err
}

func (e *Edge) config(at string) (sim.Edge, error) {
	p := reader{at: at}
	c := sim.Edge{
		To: e.To,
		Egress: egress.Config{
			Throttle: throttle.Config{
				K: e.Throttle.K, Window: e.Throttle.Window, ProbeInterval: e.Throttle.ProbeInterval, MinRequests: e.Throttle.MinRequests,
			},
			ThrottleMode: p.mode("throttle.mode", e.Throttle.Mode),
			MaxRequests:  e.MaxRequests,
			InflightMode: p.mode("inflight_mode", e.InflightMode),
		},
		Retry: e.Retry.config(&p), Kind: p.kind(e.Kind), Timeout: e.Timeout, Connections: e.Connections, Latency: e.Latency, Loss: e.Loss,
		Balance: e.Balance, Subset: e.Subset, Retarget: e.Retarget, Leave: e.Leave,
	}
	return c, p.err
}

// foreign are the fields that strategies do not have.
var foreign = map[sim.Strategy][]string{
	sim.Budgeted: {"revision", "max_retries", "other_retries", "overload_base"},
	sim.Standard: {"ratio", "max_retries", "other_retries"},
	sim.Overload: {"attempts", "ratio", "overload_base"},
}

func (r *Retry) config(p *reader) sim.Retry {
	name := r.Strategy
	if name == "" {
		name = sim.Budgeted
	}
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"revision", r.Revision != ""}, {"attempts", r.Attempts != 0}, {"ratio", r.Ratio != 0},
		{"max_retries", r.MaxRetries != 0}, {"other_retries", r.OtherRetries != 0}, {"overload_base", r.OverloadBase != 0},
	} {
		if f.given && slices.Contains(foreign[name], f.name) {
			p.failf("retry."+f.name, "is given, but %s retries have none", name)
		}
	}
	backoff := retry.Backoff{Base: r.Base, Max: r.Max}
	c := sim.Retry{
		Strategy: r.Strategy, Unlimited: r.Unlimited, NoJitter: r.NoJitter,
		Budgeted: retry.BudgetedConfig{Attempts: r.Attempts, Ratio: r.Ratio, Backoff: backoff, MaxRetryAfter: r.MaxRetryAfter},
		Standard: retry.StandardConfig{
			Revision: r.Revision, Attempts: r.Attempts, Base: r.Base, MaxBackoff: r.Max, OverloadBase: r.OverloadBase, MaxRetryAfter: r.MaxRetryAfter,
		},
		Overload: retry.OverloadConfig{
			Revision: r.Revision, MaxRetries: r.MaxRetries, OtherRetries: r.OtherRetries, Backoff: backoff, MaxRetryAfter: r.MaxRetryAfter,
		},
	}
	if r.Budget != nil {
		b := budget.Config(*r.Budget)
		c.Budget = &b
	}
	return c
}

func (s *Service) config(at string) (sim.Service, error) {
	p := reader{at: at}
	c := sim.Service{
		Name: s.Name, Tasks: s.Tasks, Processors: s.Processors, CPU: s.CPU, Wait: s.Wait, Slots: s.Slots,
		OnFailure: s.OnFailure, Discipline: s.Discipline, Queue: s.Queue, Refusal: s.Refusal, Connect: s.Connect,
		Memory: sim.Memory(s.Memory), Hints: s.Hints, AcceptRatio: s.Ratio,
	}
	for i := range s.Calls {
		e, err := s.Calls[i].config(fmt.Sprintf("%s.calls[%d]", at, i))
		if err != nil {
			return c, err
		}
		c.Calls = append(c.Calls, e)
	}
	if s.Ingress != nil {
		c.Ingress, c.Customers = s.Ingress.config(&p)
	}
	return c, p.err
}

func (g *Ingress) config(p *reader) (*ingress.Config, *quota.LocalConfig) {
	c := &ingress.Config{
		RateLimit:     ratelimit.Config{Rate: g.RateLimit.Rate, BurstSeconds: g.RateLimit.BurstSeconds, QueueDepth: g.RateLimit.QueueDepth},
		RateLimitMode: p.mode("ingress.rate_limit.mode", g.RateLimit.Mode),
		Shed:          shed.Config{MaxWait: g.Shed.MaxWait, Thresholds: g.Shed.Thresholds.array()},
		Concurrency:   concurrency.Config{MaxByKey: g.Shed.MaxByKey},
		ShedMode:      p.mode("ingress.shed.mode", g.Shed.Mode),
		Attempts:      attempts.Config(g.Attempts),
		RetryAfter:    g.RetryAfter,
		Load:          load.Config{Targets: load.Targets{CPU: g.Targets.CPU, Memory: g.Targets.Memory}},
	}
	if g.Quota == nil {
		return c, nil
	}
	c.Quota = quota.Config{BurstSeconds: g.Quota.BurstSeconds}
	c.QuotaMode = p.mode("ingress.quota.mode", g.Quota.Mode)
	local := &quota.LocalConfig{
		Capacity: g.Quota.Capacity, Customers: map[string]quota.Limit{},
		Stranger: g.Quota.Stranger.config(), Strangers: g.Quota.Strangers.config(),
	}
	for name, limit := range g.Quota.Customers {
		local.Customers[name] = limit.config()
	}
	return c, local
}

func (l Limit) config() quota.Limit {
	return quota.Limit{Rate: l.Rate, Weight: l.Weight, Shares: l.Shares.array()}
}

// A reader reads the words of a file, and keeps the first complaint.
type reader struct {
	at  string
	err error
}

func (p *reader) failf(field, format string, args ...any) {
	if p.err == nil {
		p.err = &fieldError{p.at + "." + field, fmt.Sprintf(format, args...)}
	}
}

func (p *reader) mode(field string, m Mode) (mode spillway.Mode) {
	if m != "" && mode.UnmarshalText([]byte(m)) != nil {
		p.failf(field, "is %q, must be enforce, observe or off", m)
	}
	return mode
}

func (p *reader) kind(k string) spillway.Kind {
	switch k {
	case "", "read":
		return spillway.KindRead
	case "write":
		return spillway.KindWrite
	}
	p.failf("kind", "is %q, must be read or write", k)
	return 0
}
