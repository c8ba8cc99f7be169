package sim

import (
	"cmp"
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/requests"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// examining is the processor time that it takes to look at a request, where a
// Service with an Ingress does not say.
const examining = 10 * time.Microsecond

// unknown is a caller: a task knows the customer only.
var unknown ratelimit.Caller

// newCore returns the server policies of a task, nil without any.
func newCore(s *Service, random *stream, t *task) (*requests.Core, error) {
	if s.Ingress == nil {
		return nil, nil //nolint:nilnil // there are none
	}
	c := serverPolicies(s.Ingress)
	c.Rand = random.float
	if s.Customers != nil {
		local, err := quota.NewLocal(*s.Customers)
		if err != nil {
			return nil, invalid.In("sim", "Customers", err)
		}
		c.Quota.Allocator = local
	}
	if s.LearnCosts {
		c.Costs, _ = cost.New(cost.Config{CPU: t.processorTime, Rand: random.float}) // no field can be out of range
	}
	core, err := requests.New(c, requests.Shell{State: t.state})
	return core, invalid.In("sim", "Ingress", err)
}

// serverPolicies returns what a task uses of the Ingress of its Service.
func serverPolicies(c *ingress.Config) requests.Config {
	return requests.Config{
		RateLimit: c.RateLimit, Quota: c.Quota, CostKey: c.CostKey, MaxInFlight: c.MaxInFlight,
		Shed: c.Shed, Concurrency: c.Concurrency, LimitKey: c.LimitKey, ProxyOnly: c.ProxyOnly,
		Modes:    requests.Modes{RateLimit: c.RateLimitMode, Quota: c.QuotaMode, InFlight: c.InFlightMode, Shed: c.ShedMode},
		Attempts: c.Attempts, Internal: true, RetryAfter: c.RetryAfter,
	}
}

// examine asks the server policies about a request.
func (t *task) examine(r *request) {
	t.witness.entered(r)
	if t.follow(r, t.core.Enter(&r.admission, t.clock, &r.call, &unknown)) {
		t.run(r)
	}
}

// follow does what the server policies say about a request. It reports whether the
// request computes now.
func (t *task) follow(r *request, s requests.Step) (runs bool) {
	t.wake(s.Wake)
	if s.Evicted != nil {
		t.proceed(s.Evicted)
	}
	switch s.Verdict {
	case shed.Run:
		t.compute(r, 0)
		return true
	case shed.Wait:
		if s.Waiter != nil {
			s.Waiter.Owner = r
		}
		r.until = t.now + int64(s.For)
		t.push(int64(s.For), outstay, r.ref)
	default:
		t.rejectFor(r, ingress.Rejection(r.admission.Rejection(s.Err)))
	}
	return false
}

// proceed goes on with a request that has left a queue. It returns the request if it
// runs now.
func (t *task) proceed(w *shed.Waiter) *request {
	r := w.Owner.(*request)
	if !t.follow(r, r.admission.Proceed(t.clock, &unknown)) {
		return nil
	}
	return r
}

// next returns a request that has waited in a queue and runs now, nil if there is
// none.
func (t *task) next() *request {
	for t.wakes {
		w, busy := t.core.Next(t.clock)
		if w == nil {
			t.wakes = busy
			break
		}
		if r := t.proceed(w); r != nil {
			return r
		}
	}
	return nil
}

// wake has next look for requests that wait, if the server policies say so.
func (t *task) wake(wake bool) { t.wakes = t.wakes || wake && t.core.Waiting() > 0 }

// outstayed is when a request has waited for the maximum time.
func (t *task) outstayed(r *request) {
	if t.now < r.until {
		return // that was an earlier wait
	}
	if step, ok := r.admission.Expire(t.clock, &unknown); ok && t.follow(r, step) {
		t.ready.push(r)
	}
	t.schedule()
}

// abandoned is when the task learns that the caller of a request is gone. What it
// computes it computes to the end; what waits leaves, and gives up its calls.
func (t *task) abandoned(r *request) {
	if r.left = true; !r.arrived {
		return
	}
	if step, ok := r.admission.Withdraw(t.clock, context.Canceled); ok {
		t.wake(step.Wake)
	} else if r.queues || r.open > 0 { // for a slot, or calls
		t.withdraw(r)
		t.wake(r.admission.Done(t.clock, spillway.OutcomeAbandoned))
	} else {
		return
	}
	t.present--
	t.freeRequest(r)
	t.schedule()
}

// rejectFor answers a request that the server policies have rejected.
func (t *task) rejectFor(r *request, why ingress.Rejection) {
	t.witness.rejected(r, why)
	r.reply = rejections[why.Scope()]
	if t.config.Hints && r.reply != hopeless {
		r.hint = why.RetryAfter
	}
	t.end(r)
}

// A meter measures how much of the processors a task uses.
type meter struct {
	used    int64 // nanoseconds, ever
	before  int64 // of these, those up to the last sample
	sampled int64
	cpu     float64
}

// processorTime returns the processor time that the task has used, ever.
func (t *task) processorTime() (time.Duration, error) {
	t.account()
	return time.Duration(t.meter.used), nil
}

// sampling is how often the meter is read, as in package load.
const sampling = int64(100 * time.Millisecond)

// state is the state of the task, by which its server policies decide.
func (t *task) state(time.Time) shed.State {
	t.account()
	m := &t.meter
	if d := t.now - m.sampled; d >= sampling {
		m.cpu = float64(m.used-m.before) / float64(d*int64(t.config.Processors))
		m.before, m.sampled = m.used, t.now
	}
	return shed.State{Runnable: t.ready.n, Processors: t.config.Processors, CPU: m.cpu, Utilization: t.utilization()}
}

// utilization is the greatest share that any measure has of its target.
func (t *task) utilization() float64 {
	u, targets := 0.0, &t.config.Ingress.Load.Targets
	if targets.CPU > 0 {
		u = t.meter.cpu / targets.CPU
	}
	if target := cmp.Or(targets.Memory, load.DefaultMemoryTarget); target > 0 && t.config.Memory.Limit > 0 {
		u = max(u, t.memory()/t.config.Memory.Limit/target)
	}
	return u
}
