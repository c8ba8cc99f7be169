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
	r := reader{err: new(error)}
	for _, w := range f.Windows {
		c.Windows = append(c.Windows, sim.Window(w))
	}
	for i, fault := range f.Faults {
		if f.Duration > 0 && fault.At >= f.Duration {
			r.in("faults[%d]", i).failf("at", "is %v, must be before the end (%v)", fault.At, f.Duration)
		}
		c.Faults = append(c.Faults, sim.Fault(fault))
	}
	for i := range f.Services {
		c.Services = append(c.Services, f.Services[i].config(r.in("services[%d]", i)))
	}
	for i := range f.Clients {
		c.Clients = append(c.Clients, f.Clients[i].config(r.in("clients[%d]", i)))
	}
	return c, *r.err
}

func (c *Clients) config(r reader) sim.Clients {
	g := sim.Clients{
		Name: c.Name, Count: c.Count, Rate: c.Rate, Trace: c.Trace, Loop: c.Loop, Think: c.Think, Deadline: c.Deadline, Useful: c.Useful,
		Classes: c.Classes.Array(), Customer: c.Customer, CPUFactor: c.Factor, Call: c.Call.config(r.in("call")),
	}
	for _, rate := range c.Rates {
		g.Rates = append(g.Rates, sim.Rate(rate))
	}
	return g
}

func (e *Edge) config(r reader) sim.Edge {
	r.section("throttle", e.Throttle)
	retries, foreign := e.Retry.Config()
	if foreign != "" {
		r.failf("retry."+foreign, "is given, but %s retries have none", cmp.Or(e.Retry.Strategy, sim.Budgeted))
	}
	return sim.Edge{
		To: e.To,
		Egress: egress.Config{
			Throttle:     policyconf.Fill[throttle.Config](e.Throttle),
			ThrottleMode: r.mode("throttle.mode", e.Throttle.Mode),
			MaxInFlight:  policyconf.Fill[inflight.Config](e.Inflight).MaxInFlight,
			InFlightMode: r.mode("inflight.mode", e.Inflight.Mode),
		},
		Retry: retries, Kind: r.kind(e.Kind), Timeout: e.Timeout, Connections: e.Connections, Latency: e.Latency, Loss: e.Loss,
		Balance: e.Balance, Subset: e.Subset, Retarget: e.Retarget, Leave: e.Leave,
		Times: e.Times, AtOnce: e.AtOnce,
	}
}

func (s *Service) config(r reader) sim.Service {
	c := sim.Service{
		Name: s.Name, Tasks: s.Tasks, Processors: s.Processors, CPU: s.CPU, Wait: s.Wait, Slots: s.Slots,
		OnFailure: s.OnFailure, Discipline: s.Discipline, Queue: s.Queue, Rejection: s.Rejection, Connect: s.Connect,
		Autoscale: sim.Autoscaler(s.Autoscale), Memory: sim.Memory(s.Memory), Hints: s.Hints, AcceptRatio: s.Ratio,
	}
	for i := range s.Calls {
		c.Calls = append(c.Calls, s.Calls[i].config(r.in("calls[%d]", i)))
	}
	if s.Ingress != nil {
		c.Ingress, c.Customers = s.Ingress.config(r.in("ingress"))
		c.LearnCosts = s.Ingress.LearnCosts
	}
	return c
}

func (g *Ingress) config(r reader) (*ingress.Config, *quota.LocalConfig) {
	r.section("rate_limit", g.RateLimit)
	r.section("shed", g.Shed)
	c := &ingress.Config{
		RateLimit:     policyconf.Fill[ratelimit.Config](g.RateLimit),
		RateLimitMode: r.mode("rate_limit.mode", g.RateLimit.Mode),
		Shed:          policyconf.Fill[shed.Config](g.Shed),
		Concurrency:   policyconf.Fill[concurrency.Config](g.Shed),
		ShedMode:      r.mode("shed.mode", g.Shed.Mode),
		Attempts:      policyconf.Fill[attempts.Config](g.Attempts),
		RetryAfter:    g.RetryAfter,
		Load:          policyconf.Fill[load.Config](g.Shed),
	}
	if g.Quota == nil {
		return c, nil
	}
	c.Quota = policyconf.Fill[quota.Config](*g.Quota)
	c.QuotaMode = r.mode("quota.mode", g.Quota.Mode)
	return c, new(policyconf.Fill[quota.LocalConfig](*g.Quota))
}

// A reader converts the values of a part of a file. All readers of a file keep its first error.
type reader struct {
	at  string // the part: empty, or with a dot at the end
	err *error
}

// in returns the reader of a part of this part.
func (r reader) in(format string, args ...any) reader {
	return reader{r.at + fmt.Sprintf(format, args...) + ".", r.err}
}

func (r reader) failf(field, format string, args ...any) {
	if *r.err == nil {
		*r.err = wrong(r.at+field, format, args...)
	}
}

func (r reader) mode(field string, m policyconf.Mode) spillway.Mode {
	if err := m.Check(); err != nil {
		r.failf(field, "%v", err)
	}
	return m.Or(spillway.ModeEnforce)
}

// section rejects settings that only the proxy has.
func (r reader) section(field string, section any) {
	if name := policyconf.ForProxy(section); name != "" {
		r.failf(field+"."+name, "is given, but only the configuration of the proxy has it")
	}
}

// kinds are the kinds of calls in files. Calls are reads by default.
var kinds = map[string]spillway.Kind{"": spillway.KindRead, "read": spillway.KindRead, "write": spillway.KindWrite}

func (r reader) kind(k string) spillway.Kind {
	kind, ok := kinds[k]
	if !ok {
		r.failf("kind", "is %q, must be read or write", k)
	}
	return kind
}
