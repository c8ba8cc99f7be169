package ingress

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// ask asks a gate. It reports whether that admits the request; if not, step says what to do.
func (a *Admission) ask(gate int, from *ratelimit.Caller, step *Step) (admits bool) {
	switch gate {
	case limitGate:
		return a.limit(from, step)
	case quotaGate:
		return step.reject(a.pay())
	default:
		if gate == shedGate && a.settings.config.LimitKey != nil {
			return a.arriveNamed(gate, from, step)
		}
		return a.arrive(gate, &a.call, from, step)
	}
}

// pay asks the quota.
//
//go:noinline
func (a *Admission) pay() (err error) {
	a.tickets[quotaGate], err = a.settings.quota.Admit(a.start, a.call)
	if err == nil && a.cost.extra != 0 {
		a.settings.quota.Charge(a.start, &a.tickets[quotaGate], a.cost.extra)
	}
	return err
}

// reject takes in the error of a gate, and reports whether it is nil.
func (s *Step) reject(err error) (admits bool) {
	if err != nil {
		s.Verdict, s.Err = shed.Rejected, err
	}
	return err == nil
}

// limit takes a token of the rate limit, or has the request wait for one.
func (a *Admission) limit(from *ratelimit.Caller, step *Step) (admits bool) {
	l := a.settings.limiter
	if l.Exempt(*from) {
		return true
	}
	r, err := l.ReserveBy(a.start, a.call.Deadline)
	if err != nil || r.Wait == 0 {
		return step.reject(err)
	}
	held := r
	a.reservation = &held
	step.Verdict, step.For = shed.Wait, r.Wait
	return false
}

// named returns the call as the limit of the shedder knows it, by the name of what it waits for. The name is looked up here, and not
// where a waiter is let in: that is in a goroutine of the Server, where no caller could recover from a panic of LimitKey.
func (s *settings) named(call *spillway.Call) spillway.Call {
	named := *call
	named.Key = s.config.LimitKey(call.Key)
	return named
}

// arriveNamed is arrive with Config.LimitKey.
//
//go:noinline
func (a *Admission) arriveNamed(gate int, from *ratelimit.Caller, step *Step) (admits bool) {
	call := a.settings.named(&a.call)
	return a.arrive(gate, &call, from, step)
}

// arrive asks a shedder, which may say that the request is to wait in its queue.
func (a *Admission) arrive(gate int, call *spillway.Call, from *ratelimit.Caller, step *Step) (admits bool) {
	c := a.settings.core
	by, state := c.shedder(gate, a.start, a.settings)
	state.Runnable = max(0, state.Runnable-c.companion)
	if by.Pass(a.start, call, &state, &a.tickets[gate]) {
		return true
	}
	return a.join(gate, by, call, from, &state, step)
}

// join is arrive for requests that a shedder has to examine. It is a separate function because
// each request over HTTP/2 has a new stack, and pays for the stack space that a function
// needs.
//
//go:noinline
func (a *Admission) join(
	gate int, by shedder, call *spillway.Call, from *ratelimit.Caller, state *shed.State, step *Step,
) (admits bool) {
	c := a.settings.core
	w := c.waiters.Get().(*shed.Waiter)
	w.Flow = c.flowAt(by.Shedder, call, from)
	d := by.Arrive(a.start, call, state, w)
	if d.Verdict == shed.Wait {
		a.waiter = w
		step.Verdict, step.For, step.Waiter, step.Evicted, step.Wake = shed.Wait, d.MaxWait, w, d.Evicted, true
		return false
	}
	c.waiters.Put(w)
	a.tickets[gate] = d.Ticket
	a.behind = a.behind || d.Behind
	return step.reject(d.Err)
}
