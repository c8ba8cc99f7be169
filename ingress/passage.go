package ingress

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// The gates, in order.
const (
	limitGate = iota
	quotaGate
	flightGate
	shedGate
	gates
)

var gateNames = [gates]string{"ratelimit", "quota", "inflight", "shed"}

// A Passage is the right to be served. It is a plain value: [Server.Enter] hands
// it out, and neither allocates. It must not be copied once Done may be called,
// and is not safe for concurrent use. The zero Passage, as exempt requests have,
// ends as a no-op.
type Passage struct {
	server   *Server
	settings *settings
	call     spillway.Call
	start    time.Time
	admitted [gates]bool
	mode     spillway.Mode // of the gates that it passes
	shadow   *shadow       // passes those that observe; nil if none does

	mu                  spinlock        // guards server and shed once the request runs
	quota, flight, shed spillway.Ticket // there is none of the rate limit
}

// Call returns the call as it was admitted.
func (p *Passage) Call() spillway.Call { return p.call }

// Suspend reports, at the time now, that the request waits for its client: for the
// rest of its body, for the client to read, for the next message of a stream. Until as
// many calls of [Passage.Resume] it is neither counted as work in flight nor does the
// time count as latency. Suspend and Resume are safe for concurrent use, also with
// Done, after which they do nothing.
func (p *Passage) Suspend(now time.Time) {
	p.mu.lock()
	defer p.mu.unlock()
	if p.server == nil {
		return
	}
	p.suspend(now)
	p.shadow.suspend(now)
	p.server.wakeWaiters()
}

func (p *Passage) suspend(now time.Time) {
	p.flight.Suspend(now)
	p.shed.Suspend(now)
}

// Resume ends one Suspend at the time now. It never waits.
func (p *Passage) Resume(now time.Time) {
	p.mu.lock()
	defer p.mu.unlock()
	if p.server != nil {
		p.resume(now)
		p.shadow.resume(now)
	}
}

func (p *Passage) resume(now time.Time) {
	p.flight.Resume(now)
	p.shed.Resume(now)
}

// Done ends the request with its outcome: [spillway.Served], or
// [spillway.Failed] for a failure of the server's own, [spillway.TimedOut] if the
// deadline passed, [spillway.Abandoned] if the client left. Any second call does
// nothing.
func (p *Passage) Done(o spillway.Outcome) {
	if p.server != nil {
		p.DoneAt(p.start.Add(time.Since(p.start)), o) // which reads one clock, and time.Now two
	}
}

// DoneAt is Done at the time now, for callers that have already read the clock.
func (p *Passage) DoneAt(now time.Time, o spillway.Outcome) {
	p.mu.lock()
	defer p.mu.unlock()
	s := p.server
	if s == nil {
		return
	}
	p.server = nil
	p.settle(s, now, o, o)
	if p.shadow != nil {
		p.shadow.end(now, o, o)
	}
}

// EnterAt is [Server.EnterAt] of s, for callers that have memory for the Passage, which
// must be zero: nothing of it, of the call or of the caller is copied twice. It
// keeps none of the pointers.
func (p *Passage) EnterAt(ctx context.Context, s *Server, now time.Time, call *spillway.Call, from *ratelimit.Caller) Refusal {
	st := s.settings.Load()
	if st.exempt(call) {
		return Refusal{}
	}
	p.server, p.settings, p.call, p.start = s, st, *call, now
	if d, ok := ctx.Deadline(); ok && (p.call.Deadline.IsZero() || d.Before(p.call.Deadline)) {
		p.call.Deadline = d
	}
	if st.observes {
		p.shadow = p.cast()
	}
	st.observe(now, &p.call)
	if s.signals.due(now) {
		s.look(st, now)
	}
	r := p.enter(ctx, from)
	if r.Refused() {
		*p = Passage{}
	}
	return r
}

// enter asks each gate in turn until one refuses.
func (p *Passage) enter(ctx context.Context, from *ratelimit.Caller) Refusal {
	for gate, mode := range &p.settings.modes {
		switch mode {
		case spillway.Enforce:
			if err := p.pass(ctx, gate, from); err != nil {
				p.shadow.end(p.start, spillway.Overloaded, spillway.Abandoned)
				return p.server.refuse(p.settings, p.start, &p.call, err)
			}
		case spillway.Observe:
			p.shadow.look(gate, from)
		case spillway.Off: // not asked
		}
	}
	return Refusal{}
}

// pass asks a gate, waits if it says so, and reports a refusal.
func (p *Passage) pass(ctx context.Context, gate int, from *ratelimit.Caller) error {
	w, err := p.ask(gate, from)
	if w != (wait{}) {
		err = p.await(ctx, w)
	}
	return p.take(gate, err)
}

// take takes in what a gate has said, and returns err.
func (p *Passage) take(gate int, err error) error {
	if err == nil {
		p.admitted[gate] = true
		return nil
	}
	p.report(gate, rejectionEvent(err))
	p.settle(p.server, p.start, spillway.Overloaded, spillway.Abandoned)
	return err
}

// rejectionEvent is the event of a request that a gate did not admit.
func rejectionEvent(err error) spillway.Event {
	if e := spillway.Rejection(err); e.Reason != spillway.ReasonNone {
		return e
	}
	return spillway.Event{Outcome: spillway.Abandoned, Err: err} // the context has ended
}

// ask asks a gate, which decides or says what to wait for.
func (p *Passage) ask(gate int, from *ratelimit.Caller) (w wait, err error) {
	switch gate {
	case limitGate:
		return p.limit(from)
	case quotaGate:
		p.quota, err = p.settings.quota.Admit(p.start, p.call)
		return w, err
	default:
		return p.arrive(gate, from)
	}
}

// limit takes a token of the rate limit, or is to wait for it.
func (p *Passage) limit(from *ratelimit.Caller) (w wait, err error) {
	l := p.settings.limiter
	if l.Exempt(*from) {
		return w, nil
	}
	r, err := l.Reserve(p.start)
	if err == nil && r.Wait > 0 {
		if d := p.call.Deadline; !d.IsZero() && d.Sub(p.start) <= r.Wait {
			r.End(p.start) // gives the token back
			return w, hopeless
		}
		held := r
		w.reservation = &held
	}
	return w, err
}

// hopeless refuses a request that would wait for a token beyond its deadline.
var hopeless = &spillway.RejectedError{
	Policy: gateNames[limitGate],
	Reason: spillway.ReasonDeadline,
	Advice: "the deadline comes before a token does; send less, allow more time, or raise Rate if there is room",
}

// arrive asks a shedder, which may say that the request is to wait in its queue.
func (p *Passage) arrive(gate int, from *ratelimit.Caller) (w wait, err error) {
	s := p.server
	by, state := s.shedder(gate, p.start)
	state.Runnable = max(0, state.Runnable-companions)
	if by.Pass(p.start, &p.call, &state, p.ticket(gate)) {
		s.beat()
		return w, nil
	}
	place := s.waiters.Get().(*waiter)
	place.Flow = by.flow(&p.call, from)
	d := by.Arrive(p.start, p.call, state, &place.Waiter)
	if d.Evicted != nil {
		release(d.Evicted)
	}
	if d.Verdict == shed.Wait {
		s.wake()
		return wait{place: place, gate: gate, most: d.MaxWait}, nil
	}
	s.waiters.Put(place)
	*p.ticket(gate) = d.Ticket
	s.beat()
	return w, d.Err
}

// ticket returns where the one of a shedder is kept.
func (p *Passage) ticket(gate int) *spillway.Ticket {
	if gate == flightGate {
		return &p.flight
	}
	return &p.shed
}

// A wait is what a request waits for: a token, or to be let out of the room. The
// zero wait is none.
type wait struct {
	reservation *ratelimit.Reservation
	place       *waiter
	gate        int
	most        time.Duration // in the waiting queue
}

// await waits, and returns the result.
func (p *Passage) await(ctx context.Context, w wait) (err error) {
	if w.reservation != nil {
		err = pause(ctx, w.reservation.Wait)
		p.start = time.Now()
		w.reservation.End(p.start)
		return err
	}
	s := p.server
	by, _ := s.shedder(w.gate, p.start)
	*p.ticket(w.gate), err = by.wait(ctx, w.place, w.most)
	s.waiters.Put(w.place)
	s.beat()
	now := time.Now()
	s.load.Waited(now.Sub(p.start))
	if w.gate == flightGate {
		p.start = now // the shedder comes next
	}
	return err
}

// companions is how many goroutines a request brings along that are ready to run
// and are no work: the one by which net/http notices that the client has left.
const companions = 1

// settle settles each gate that admitted the request with the outcome o, and reports the
// outcome told.
func (p *Passage) settle(s *Server, now time.Time, o, told spillway.Outcome) {
	p.quota.Settle(now, o)
	if p.flight.By != nil || p.shed.By != nil {
		p.flight.Settle(now, o)
		p.shed.Settle(now, o)
		s.wakeWaiters()
	}
	if p.settings.config.Observer == nil {
		return
	}
	for gate, admitted := range p.admitted {
		if admitted {
			p.report(gate, spillway.Event{Latency: now.Sub(p.start), Outcome: told})
		}
	}
}

// report sends the one event of the request and the gate.
func (p *Passage) report(gate int, e spillway.Event) {
	if o := p.settings.config.Observer; o != nil {
		e.Time, e.Call, e.Policy, e.Mode = p.start, p.call, gateNames[gate], p.mode
		o.Observe(e)
	}
}
