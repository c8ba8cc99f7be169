package sim

import (
	"cmp"
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// examining is the processor time that it takes to look at a request, where a
// Service with an Ingress does not say.
const examining = 10 * time.Microsecond

// The gates of a request that leave a ticket, in the order of package ingress.
const (
	quotaGate = iota
	shedGate
	ingressGates
)

// gates are the server policies of a task, in the order of package ingress.
type gates struct {
	config    *ingress.Config
	limited   bool
	limiter   *ratelimit.Limiter
	quota     *quota.Quota // nil: none
	shed      *shed.Shedder
	histogram *attempts.Histogram
	random    *stream
	accepting accepting
}

// newGates returns the server policies of a task, nil if it has none, or the field
// of s that is wrong.
func newGates(s *Service, random *stream) (g *gates, field string, err error) {
	if s.Ingress == nil {
		return nil, "", nil
	}
	c := s.Ingress
	g = &gates{config: c, limited: c.RateLimit.Rate > 0, random: random}
	if g.limiter, err = ratelimit.New(c.RateLimit); err != nil {
		return nil, "Ingress.RateLimit", err
	}
	limit, err := concurrency.New(c.Concurrency)
	if err != nil {
		return nil, "Ingress.Concurrency", err
	}
	sc := c.Shed
	sc.Rand, sc.Limit = random.float, limit
	if g.shed, err = shed.New(sc); err != nil {
		return nil, "Ingress.Shed", err
	}
	if g.histogram, err = attempts.New(c.Attempts); err != nil {
		return nil, "Ingress.Attempts", err
	}
	if s.Customers == nil {
		return g, "", nil
	}
	qc := c.Quota
	local, err := quota.NewLocal(*s.Customers)
	if err != nil {
		return nil, "Customers", err
	}
	qc.Allocator = local
	if g.quota, err = quota.New(qc); err != nil {
		return nil, "Ingress.Quota", err
	}
	return g, "", nil
}

// enter asks each gate in turn until one refuses. It reports whether the request is
// to run now; if not, it waits or was refused.
func (g *gates) enter(t *task, r *request) (run bool) {
	r.entered = t.now
	if t.witness.entered != nil {
		t.witness.entered(r)
	}
	g.histogram.Observe(t.clock, int(r.call.Attempt))
	if !g.limited || g.config.RateLimitMode == spillway.Off {
		return g.charge(t, r, false)
	}
	reserved, err := g.limiter.Reserve(t.clock)
	switch {
	case err != nil && g.config.RateLimitMode == spillway.Enforce:
		g.refuse(t, r, overloaded, err)
		return false
	case err != nil || reserved.Wait == 0:
	case g.config.RateLimitMode == spillway.Enforce:
		r.reserved, r.queues = reserved, true
		t.push(int64(reserved.Wait), pass, r.place, r.gen)
		return false
	default:
		reserved.End(t.clock)
	}
	return g.charge(t, r, err != nil)
}

// passed is when a request has waited for a token of the rate limit.
func (t *task) passed(r *request) {
	r.reserved.End(t.clock)
	r.entered, r.queues = t.now, false
	if t.gates.charge(t, r, false) {
		t.compute(r, 0)
		t.ready.push(r)
	}
	t.schedule()
}

// charge asks the quota and then the shedder. What a gate that observes would have
// refused is shown to no further one that observes.
func (g *gates) charge(t *task, r *request, observed bool) (run bool) {
	if mode := g.config.QuotaMode; g.quota != nil && mode != spillway.Off && !(mode == spillway.Observe && observed) {
		ticket, err := g.quota.Admit(t.clock, r.call)
		if err != nil && mode == spillway.Enforce {
			g.refuse(t, r, overQuota, err)
			return false
		}
		r.tickets[quotaGate], observed = ticket, observed || err != nil
	}
	switch mode := g.config.ShedMode; {
	case mode == spillway.Off, mode == spillway.Observe && observed:
		return true
	case mode == spillway.Observe:
		r.tickets[shedGate] = g.shed.Arrive(t.clock, r.call, t.state(), nil).Ticket
		return true
	}
	return g.arrive(t, r)
}

// arrive asks the shedder, in whose room the request may wait.
func (g *gates) arrive(t *task, r *request) (run bool) {
	r.waiter.Owner = r
	d := g.shed.Arrive(t.clock, r.call, t.state(), &r.waiter)
	if d.Evicted != nil {
		g.refuse(t, d.Evicted.Owner.(*request), overloaded, d.Evicted.Err)
	}
	switch d.Verdict {
	case shed.Run:
		r.tickets[shedGate] = d.Ticket
		return true
	case shed.Wait:
		t.push(int64(d.MaxWait), outstay, r.place, r.gen)
	default:
		g.refuse(t, r, overloaded, d.Err)
	}
	return false
}

// next returns a request that has waited in the room and is to run now, nil if
// there is none.
func (g *gates) next(t *task) *request {
	if g.shed.Waiting() == 0 {
		return nil
	}
	w, _ := g.shed.Next(t.clock, t.state())
	if w == nil {
		return nil
	}
	r := w.Owner.(*request)
	r.tickets[shedGate] = w.Ticket
	return r
}

// outstayed is when a request has been in the room for as long as it may.
func (t *task) outstayed(r *request) {
	if t.gates.shed.Expire(&r.waiter) {
		t.gates.refuse(t, r, overloaded, r.waiter.Err)
	}
}

// refuse ends a request that a gate refused.
func (g *gates) refuse(t *task, r *request, a reply, err error) {
	g.settle(t.at(r.entered), r, spillway.Overloaded)
	if a == overloaded && g.histogram.DontRetry(t.at(r.entered)) {
		a = hopeless
	}
	if hint := g.hint(err); t.config.Hints && a != hopeless {
		r.hint = hint
	}
	t.refuse(r, a)
}

// hint is when to come back, with jitter.
func (g *gates) hint(err error) time.Duration {
	d, jitter := g.config.RetryAfter, g.random.float()
	if d == 0 {
		d = time.Second
	}
	if e, ok := errors.AsType[*spillway.RejectedError](err); ok && e.RetryAfter > 0 {
		d, jitter = e.RetryAfter, jitter+0.5
	}
	return time.Duration(float64(d) * (0.5 + jitter))
}

func (g *gates) settle(now time.Time, r *request, o spillway.Outcome) {
	for i := range r.tickets {
		r.tickets[i].Settle(now, o)
	}
}

// A meter is what a task knows of its own use of the processors.
type meter struct {
	used    int64 // nanoseconds since the last sample
	sampled int64
	cpu     float64
}

// sampling is how often the meter is read, as in package load.
const sampling = int64(100 * time.Millisecond)

// state is what the shedder is told of the task.
func (t *task) state() shed.State {
	t.account()
	m := &t.meter
	if d := t.now - m.sampled; d >= sampling {
		m.cpu = float64(m.used) / float64(d*int64(t.config.Processors))
		m.used, m.sampled = 0, t.now
	}
	return shed.State{Runnable: t.ready.n, Processors: t.config.Processors, CPU: m.cpu, Utilization: t.utilization()}
}

// utilization is the greatest share that any measure has of its target.
func (t *task) utilization() float64 {
	u, targets := 0.0, &t.gates.config.Load.Targets
	if targets.CPU > 0 {
		u = t.meter.cpu / targets.CPU
	}
	if target := cmp.Or(targets.Memory, 0.95); target > 0 && t.config.Memory.Limit > 0 {
		u = max(u, t.memory()/t.config.Memory.Limit/target)
	}
	return u
}
