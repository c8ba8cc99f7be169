package ingress

import (
	"context"
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// The gates, in order.
const (
	limitGate = iota
	quotaGate
	shedGate
	gates
)

var gateNames = [gates]string{"ratelimit", "quota", "shed"}

// A Passage is the right to be served. It is a plain value: [Server.Enter] hands
// it out, and neither allocates. It must not be copied once Done may be called,
// and is not safe for concurrent use. The zero Passage, as exempt requests have,
// ends as a no-op.
type Passage struct {
	server   *Server
	settings *settings
	call     spillway.Call
	start    time.Time
	tickets  [gates]spillway.Ticket
	admitted [gates]bool
	observed bool // a gate that observes would have refused
}

// Call returns the call as it was admitted.
func (p *Passage) Call() spillway.Call { return p.call }

// Done ends the request with what became of it: [spillway.Served], or
// [spillway.Failed] for a failure of the server's own, [spillway.TimedOut] if the
// deadline passed, [spillway.Abandoned] if the client left. Any second call does
// nothing.
func (p *Passage) Done(o spillway.Outcome) {
	s := p.server
	if s == nil {
		return
	}
	p.server = nil
	p.settle(time.Now(), o, o)
	if s.shed.Waiting() > 0 {
		s.wake()
	}
}

func (p *Passage) mode(gate int) spillway.Mode {
	c := &p.settings.config
	return [gates]spillway.Mode{c.RateLimitMode, c.QuotaMode, c.ShedMode}[gate]
}

// enter asks each gate in turn until one refuses.
func (p *Passage) enter(ctx context.Context, from ratelimit.Caller) Refusal {
	for gate := range gates {
		mode := p.mode(gate)
		if !p.settings.has[gate] || mode == spillway.Off || mode == spillway.Observe && p.observed {
			continue
		}
		reason, err := p.ask(ctx, gate, from)
		if err == nil {
			p.admitted[gate] = true
			continue
		}
		p.report(gate, refusalEvent(reason, err))
		if mode == spillway.Observe && reason != Left {
			p.observed = true
			continue
		}
		p.settle(p.start, spillway.Overloaded, spillway.Abandoned)
		return p.settings.refuse(p.start, p.call, reason, err)
	}
	return Refusal{}
}

// refusalEvent is the one of a request that a gate did not admit.
func refusalEvent(reason Reason, err error) spillway.Event {
	if reason == Left {
		return spillway.Event{Outcome: spillway.Abandoned, Err: err}
	}
	return spillway.Event{Refused: true, Err: err}
}

func (p *Passage) ask(ctx context.Context, gate int, from ratelimit.Caller) (reason Reason, err error) {
	switch gate {
	case limitGate:
		return p.limit(ctx, from)
	case quotaGate:
		p.tickets[gate], err = p.settings.quota.Admit(p.start, p.call)
		return OverQuota, err
	default:
		return p.shed(ctx)
	}
}

// limit takes a token of the rate limit, and waits for it if need be.
func (p *Passage) limit(ctx context.Context, from ratelimit.Caller) (Reason, error) {
	l := p.settings.limiter
	if l.Exempt(from) {
		return 0, nil
	}
	r, err := l.Reserve(p.start)
	if err != nil {
		return Overloaded, err
	}
	if r.Wait == 0 {
		return 0, nil
	}
	if p.mode(limitGate) == spillway.Enforce {
		err = pause(ctx, r.Wait)
		p.start = time.Now()
	}
	r.End(p.start)
	return Left, err
}

// shed asks the shedder, and waits in its room if need be. A gate that observes
// does not wait.
func (p *Passage) shed(ctx context.Context) (reason Reason, err error) {
	s := p.server
	state := s.state(p.start)
	state.Runnable = max(0, state.Runnable-companions)
	var w *waiter
	var place *shed.Waiter
	if p.mode(shedGate) == spillway.Enforce {
		w = s.waiters.Get().(*waiter)
		defer s.waiters.Put(w)
		place = &w.Waiter
	}
	d := s.shed.Arrive(p.start, p.call, state, place)
	if d.Evicted != nil {
		release(d.Evicted)
	}
	if d.Verdict == shed.Wait {
		s.wake()
		p.tickets[shedGate], err = s.wait(ctx, w, d.MaxWait)
		s.load.Waited(time.Since(p.start))
		if err != nil && errors.Is(err, ctx.Err()) {
			return Left, err
		}
		return Overloaded, err
	}
	p.tickets[shedGate] = d.Ticket
	return Overloaded, d.Err
}

// companions is how many goroutines a request brings along that are ready to run
// and are no work: the one by which net/http notices that the client has left.
const companions = 1

// settle tells each gate that admitted the request what became of it, and
// reports that as told.
func (p *Passage) settle(now time.Time, o, told spillway.Outcome) {
	for gate := range p.tickets {
		p.tickets[gate].Settle(now, o)
		if p.admitted[gate] {
			p.report(gate, spillway.Event{Latency: now.Sub(p.start), Outcome: told})
		}
	}
}

// report sends the one event of the request and the gate.
func (p *Passage) report(gate int, e spillway.Event) {
	if o := p.settings.config.Observer; o != nil {
		e.Time, e.Call, e.Policy, e.Mode = p.start, p.call, gateNames[gate], p.mode(gate)
		o.Observe(e)
	}
}
