package scenario

import (
	"cmp"
	"fmt"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/sim"
	"github.com/seed90641741/spillway/throttle"
)

// config returns the system of f. It checks only what the file alone has: sim.New checks the
// rest.
func (f *File) config() (sim.Config, error) {
	c := sim.Config{Seed: cmp.Or(f.Seed, 1), Duration: f.Duration, Step: f.Step}
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
		Deadline: c.Deadline, Useful: c.Useful, Classes: c.Classes.Array(), Customer: c.Customer, CPUFactor: c.Factor, Call: call,
	}
	for _, r := range c.Rates {
		g.Rates = append(g.Rates, sim.Rate(r))
	}
	return g, err
}

func (e *Edge) config(at string) (sim.Edge, error) {
	p := reader{at: at}
	p.section("throttle", e.Throttle)
	retries, foreign := e.Retry.Config()
	if foreign != "" {
		p.failf("retry."+foreign, "is given, but %s retries have none", cmp.Or(e.Retry.Strategy, sim.Budgeted))
	}
	c := sim.Edge{
		To: e.To,
		Egress: egress.Config{
			Throttle:     policyconf.Fill[throttle.Config](e.Throttle),
			ThrottleMode: p.mode("throttle.mode", e.Throttle.Mode),
			MaxRequests:  policyconf.Fill[inflight.Config](e.Inflight).MaxRequests,
			InflightMode: p.mode("inflight.mode", e.Inflight.Mode),
		},
		Retry: retries, Kind: p.kind(e.Kind), Timeout: e.Timeout, Connections: e.Connections, Latency: e.Latency, Loss: e.Loss,
		Balance: e.Balance, Subset: e.Subset, Retarget: e.Retarget, Leave: e.Leave,
	}
	return c, p.err
}

func (s *Service) config(at string) (sim.Service, error) {
	p := reader{at: at}
	c := sim.Service{
		Name: s.Name, Tasks: s.Tasks, Processors: s.Processors, CPU: s.CPU, Wait: s.Wait, Slots: s.Slots,
		OnFailure: s.OnFailure, Discipline: s.Discipline, Queue: s.Queue, Rejection: s.Rejection, Connect: s.Connect,
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
		c.LearnCosts = s.Ingress.LearnCosts
	}
	return c, p.err
}

func (g *Ingress) config(p *reader) (*ingress.Config, *quota.LocalConfig) {
	p.section("ingress.rate_limit", g.RateLimit)
	p.section("ingress.shed", g.Shed)
	c := &ingress.Config{
		RateLimit:     policyconf.Fill[ratelimit.Config](g.RateLimit),
		RateLimitMode: p.mode("ingress.rate_limit.mode", g.RateLimit.Mode),
		Shed:          policyconf.Fill[shed.Config](g.Shed),
		Concurrency:   policyconf.Fill[concurrency.Config](g.Shed),
		ShedMode:      p.mode("ingress.shed.mode", g.Shed.Mode),
		Attempts:      policyconf.Fill[attempts.Config](g.Attempts),
		RetryAfter:    g.RetryAfter,
		Load:          policyconf.Fill[load.Config](g.Shed),
	}
	if g.Quota == nil {
		return c, nil
	}
	c.Quota = policyconf.Fill[quota.Config](*g.Quota)
	c.QuotaMode = p.mode("ingress.quota.mode", g.Quota.Mode)
	return c, new(policyconf.Fill[quota.LocalConfig](*g.Quota))
}

// A reader converts the values of a file, and keeps the first error.
type reader struct {
	at  string
	err error
}

func (p *reader) failf(field, format string, args ...any) {
	if p.err == nil {
		p.err = &fieldError{p.at + "." + field, fmt.Sprintf(format, args...)}
	}
}

func (p *reader) mode(field string, m policyconf.Mode) spillway.Mode {
	if err := m.Check(); err != nil {
		p.failf(field, "%v", err)
	}
	return m.Or(spillway.ModeEnforce)
}

// section rejects settings that only the proxy has.
func (p *reader) section(field string, section any) {
	if name := policyconf.ForProxy(section); name != "" {
		p.failf(field+"."+name, "is given, but only the configuration of the proxy has it")
	}
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
