package ingress

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/requests"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A Slot is the right to be served. It is a plain value: [Server.Enter] hands
// it out, and neither allocates. It must not be copied once Done may be called,
// and is not safe for concurrent use. The zero Slot ends as a no-op, and so
// does that of an exempt request.
type Slot struct {
	server    *Server            // nil: exempt, rejected, or not entered
	mu        spinlock           // guards admission once the request runs; it ends with Done
	waited    bool               // for standing or longer, until the gates admitted the request
	admission requests.Admission // the request on its way through the gates
	unwatch   func() bool        // ends the watch over the client; nil: there is none
}

// standing is the shortest wait that counts for Waited. Package concurrency takes a shorter wait
// for too short to show a standing queue.
const standing = 5 * time.Millisecond

// Waited reports whether the request waited for 5 ms or longer until the gates admitted it, or
// waits behind a limit afterwards. This task then has more to do than it can do at once, and
// another task may have less: the answer should tell callers that can choose. Call it before Done.
func (p *Slot) Waited() bool { return p.waited || p.admission.Behind() }

// Context returns the context that the request has entered with. Call it before Done.
func (p *Slot) Context() context.Context { return p.admission.Context }

// Call returns the call as it was admitted.
func (p *Slot) Call() spillway.Call { return p.admission.Call }

// EnterAt is [Server.Enter] of s at the time now, for callers that have already read the clock.
// The Slot must be zero or have ended, so that callers can use its memory again: a Slot is large,
// and to copy it takes a tenth of the time of a decision. EnterAt keeps none of the pointers. A
// call without a Level gets a random one, which EnterAt sets in call, too.
func (p *Slot) EnterAt(ctx context.Context, s *Server, now time.Time, call *spillway.Call, from *ratelimit.Caller) (r Rejection) {
	a := &p.admission
	if !s.core.Begin(a, now, call) {
		*p = Slot{admission: requests.Admission{Context: ctx}} // nothing of the request before is left
		return r
	}
	if d, ok := ctx.Deadline(); ok && (a.Call.Deadline.IsZero() || d.Before(a.Call.Deadline)) {
		a.Call.Deadline = d
	}
	p.enter(ctx, s, from, &r)
	return r
}

// enter asks the gates about an Admission that has begun. If they reject the request, r says why.
func (p *Slot) enter(ctx context.Context, s *Server, from *ratelimit.Caller, r *Rejection) {
	a := &p.admission
	p.server, p.mu, p.waited, a.Context = s, unlocked, false, ctx
	s.panicked.GoOn()
	returned := false
	defer func() {
		if !returned {
			p.abort()
		}
	}()
	var step requests.Step
	runs := a.Ask(from, &step)
	if a.Queues() {
		s.beat()
	}
	if (runs || p.follow(ctx, &step, from, r)) && s.heart.silent.Load() {
		p.watch(ctx)
	}
	returned = true
}

// abort gives back what the request holds after code of the user (an Observer, a Signal, an
// Allocator) has panicked before the request was admitted.
func (p *Slot) abort() {
	defer p.server.wakeWaiters()
	abandon(&p.admission)
	*p = Slot{}
}

// watch reports to the limit when the client leaves. It is needed only while no request is
// answered. Otherwise the limit learns soon enough that a client has left, when the request ends.
func (p *Slot) watch(ctx context.Context) {
	ticket := *p.admission.Shedder()
	p.unwatch = context.AfterFunc(ctx, func() { ticket.Leave(time.Now()) })
}

// follow waits as the gates require, until they admit or reject the request. If they reject it, r
// says why.
func (p *Slot) follow(ctx context.Context, step *requests.Step, from *ratelimit.Caller, r *Rejection) (admitted bool) {
	s, a := p.server, &p.admission
	came := a.Start
	for step.Verdict == shed.Wait {
		*step = s.await(ctx, a, *step, from)
		p.waited = time.Since(came) >= standing
	}
	if step.Wake {
		s.wakeWaiters()
	}
	if step.Verdict == shed.Run {
		return true
	}
	*r = Rejection(a.Rejection(step.Err))
	*p = Slot{}
	return false
}

// Suspend reports, at the time now, that the request waits for its client: for the
// rest of its body, for the client to read, for the next message of a stream. Until as
// many calls of [Slot.Resume] it is neither counted as work in flight nor does the
// time count as latency. Suspend and Resume are safe for concurrent use, also with
// Done, after which they do nothing.
func (p *Slot) Suspend(now time.Time) { p.change(now, 1, 0) }

// Resume ends one Suspend at the time now. It never waits.
func (p *Slot) Resume(now time.Time) { p.change(now, -1, 0) }

// Answer reports, at the time now, that the answer begins, where it ends much later: a stream, a
// watch, an upgraded connection. A client that leaves afterwards was answered. Answer is safe for
// concurrent use, also with Done, after which it does nothing.
func (p *Slot) Answer(now time.Time) {
	if !p.mu.lock() {
		return
	}
	defer p.mu.unlock()
	p.admission.Shedder().Answer(now)
}

// Charge adds cost, at the time now, to what the request costs the quota of its customer, or
// gives it back where cost is negative: what the request was found to cost, less
// [quota.Config.Cost]. See [quota.Quota.Charge]. Charge is safe for concurrent use, also with
// Done, after which it does nothing, as without a quota.
func (p *Slot) Charge(now time.Time, cost float64) { p.change(now, 0, cost) }

// change does the work of Suspend if suspends is 1, of Resume if it is -1, and of Charge if it is
// 0.
func (p *Slot) change(now time.Time, suspends int, cost float64) {
	if s := p.apply(now, suspends, cost); s != nil && suspends > 0 {
		s.wakeWaiters()
	}
}

// apply does what change does under the lock. It returns the Server if the request has not ended.
func (p *Slot) apply(now time.Time, suspends int, cost float64) *Server {
	if !p.mu.lock() {
		return nil
	}
	defer p.mu.unlock()
	p.admission.Change(now, suspends, cost)
	return p.server
}

// Chargeable reports whether [Slot.Charge] can have an effect: whether the request has passed
// a quota. Call it before Done.
func (p *Slot) Chargeable() bool { return p.admission.Chargeable() }

// Done ends the request with its outcome: [spillway.OutcomeServed], or
// [spillway.OutcomeFailed] for a failure of the server's own, [spillway.OutcomeTimedOut] if the
// deadline passed, [spillway.OutcomeAbandoned] if the client left. Any second call does
// nothing.
func (p *Slot) Done(o spillway.Outcome) {
	if p.server != nil {
		start := p.admission.Start
		p.DoneAt(start.Add(time.Since(start)), o) // time.Since reads one clock, and time.Now two
	}
}

// DoneAt is Done at the time now, for callers that have already read the clock.
func (p *Slot) DoneAt(now time.Time, o spillway.Outcome) {
	if !p.mu.end() || p.server == nil {
		return
	}
	if p.unwatch != nil {
		p.unwatch()
		p.unwatch = nil
	}
	if p.admission.End(now, o) {
		p.server.wakeWaiters()
	}
	p.admission.Report(now, o) // last, as an Observer may panic
}
