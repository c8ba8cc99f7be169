package requests

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// Ask asks all gates in turn whether the request may be served, until one says to wait or rejects.
// It reports whether the request runs; if not, step says what to do. from is what is known of the
// caller; Ask does not keep it. Ask allocates nothing unless the request waits for a token.
func (a *Admission) Ask(from *ratelimit.Caller, step *Step) (runs bool) {
	c, st := a.settings.core, a.settings
	if st.config.Costs != nil {
		a.beginCost()
	}
	st.countAttempt(a.Start, &a.Call)
	if c.signals.due(a.Start) {
		c.signals.refresh(st, a.Start, c.State)
	}
	return a.advance(from, step)
}

// advance asks the gates that come next. It reports whether all have admitted the request; if not,
// step says what to do. A Step is too large to be returned on this path.
func (a *Admission) advance(from *ratelimit.Caller, step *Step) (runs bool) {
	decided := false
	defer func() {
		if !decided { // a Signal or an Observer has panicked
			a.settle(a.Start, spillway.OutcomeNotStarted)
		}
	}()
	for gate := int(a.gate); gate < gates; gate++ {
		switch a.settings.modes[gate] {
		case spillway.ModeEnforce:
			if a.ask(gate, from, step) {
				a.admitted[gate] = true
				continue
			}
			a.gate = uint8(gate) + 1
			if step.Verdict == shed.Rejected {
				a.reject(a.Start, gate, step)
			}
			decided = true
			return false
		case spillway.ModeObserve:
			a.observe(gate, from)
		default: // not asked
		}
	}
	step.Verdict, decided = shed.Run, true
	return true
}

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
		return a.arrive(gate, &a.Call, from, step)
	}
}

// pay asks the quota.
//
//go:noinline
func (a *Admission) pay() (err error) {
	a.tickets[quotaGate], err = a.settings.quota.Admit(a.Start, a.Call)
	if err == nil && a.cost.extra != 0 {
		a.settings.quota.Charge(a.Start, &a.tickets[quotaGate], a.cost.extra)
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
	r, err := l.ReserveBy(a.Start, a.Call.Deadline)
	if err != nil || r.Wait == 0 {
		return step.reject(err)
	}
	held := r
	a.reservation = &held
	step.Verdict, step.For = shed.Wait, r.Wait
	return false
}

// arriveNamed is arrive with Config.LimitKey.
//
//go:noinline
func (a *Admission) arriveNamed(gate int, from *ratelimit.Caller, step *Step) (admits bool) {
	call := a.settings.named(&a.Call)
	return a.arrive(gate, &call, from, step)
}

// arrive asks a shedder, which may say that the request is to wait in its queue.
func (a *Admission) arrive(gate int, call *spillway.Call, from *ratelimit.Caller, step *Step) (admits bool) {
	c := a.settings.core
	by, state := c.shedder(gate, a.Start, a.settings)
	state.Runnable = max(0, state.Runnable-c.Companions)
	if by.Pass(a.Start, call, &state, &a.tickets[gate]) {
		return true
	}
	return a.join(gate, by, call, from, &state, step)
}

// join is arrive for requests that a shedder has to examine. It is a separate function because each
// request over HTTP/2 has a new stack, and pays for the stack space that a function needs.
//
//go:noinline
func (a *Admission) join(
	gate int, by Shedder, call *spillway.Call, from *ratelimit.Caller, state *shed.State, step *Step,
) (admits bool) {
	c := a.settings.core
	w := c.newWaiter()
	w.Flow = flowAt(by.Shedder, call, from, c.Secret)
	d := by.Arrive(a.Start, call, state, w)
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
