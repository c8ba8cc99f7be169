package sim

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/calls"
	"github.com/seed90641741/spillway/internal/ejection"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/throttle"
)

// An edge is all callers of one kind, and the service that they call. It does for
// each of them what package egress does: calls are tried until the strategy gives
// up, and each attempt has to pass the throttle and the in-flight limit.
type edge struct {
	*Sim

	config   *Edge
	to       *service
	group    *group // nil where the callers are tasks
	callers  []caller
	current  int32          // caller for whom the stack decides
	stack    calls.Policies // of the current caller
	budget   budget.Config
	throttle throttle.Config
	keep     int64   // for how long policies remember
	swept    int64   // when the callers were last looked through
	network  *stream // latency, loss
	choice   *stream // of tasks
}

// A call is one that is under way.
type call struct {
	ref // of its attempt: the generation grows with each, and when the call ends

	edge     *edge
	flow     calls.Flow
	call     spillway.Call
	intended int64 // when the call was to begin
	client   int32
	attempts int32    // that were sent
	at       int32    // task that the attempt was sent to
	parent   ref      // the request that waits for this call
	request  *request // of the attempt, nil while it waits for a connection; may have ended
	open     bool     // has a connection
	trying   bool     // an attempt is under way, not the wait for one
	again    bool     // its client makes another one after it
}

// task returns the one that makes the call, nil if it is made by a client.
func (c *call) task() *task {
	if r := c.edge.requestOf(c.parent); r != nil {
		return r.task
	}
	return nil
}

func (s *Sim) newEdge(c *Edge, callers int, g *group) *edge {
	e := &edge{
		Sim: s, config: c, group: g, to: s.services[s.config.service(c.To)], callers: make([]caller, callers),
		budget: c.Retry.bucket(), throttle: c.Egress.Throttle, network: s.stream(), choice: s.stream(),
	}
	window := cmp.Or(c.Egress.Throttle.Window, throttle.DefaultWindow)
	// Until the last bucket has left the window, and no limit or ejection remembers anything either.
	e.keep = int64(max(window+window/10, throttle.AdviceLifetime, 2*ejection.Max))
	strategy, _ := c.Retry.strategy((*callerBudget)(e), s.stream().float) // was tried once
	e.stack = calls.Policies{ThrottleMode: c.Egress.ThrottleMode, InFlightMode: c.Egress.InFlightMode, Retry: strategy}
	e.throttle.Rand = s.stream().float
	s.edges = append(s.edges, e)
	return e
}

// begin makes a call: for the request parent, if that is not zero. The client of a loop makes
// another call after it if again.
func (e *edge) begin(client int32, what spillway.Call, parent ref, again bool) {
	e.begun++
	c := e.takeCall()
	what.Key, what.Kind = e.config.To, e.config.Kind
	*c = call{ref: c.ref, edge: e, call: what, intended: e.now, client: client, parent: parent, again: again}
	if e.group != nil {
		e.group.offer(c)
	}
	if r := e.requestOf(parent); r != nil {
		r.calls = append(r.calls, c)
	}
	e.use(client)
	e.later(c, c.flow.Begin(&e.stack, &what, nil).Wait)
}

// later makes the next attempt after a delay.
func (e *edge) later(c *call, d time.Duration) {
	if d > 0 {
		e.push(int64(d), send, c.ref)
		return
	}
	e.attempt(c)
}

// attempt makes an attempt, if all gates admit it.
func (e *edge) attempt(c *call) {
	e.use(c.client).flying++
	step := c.flow.Resume(e.clock, nil)
	c.call.Attempt, c.request, c.trying = int16(min(c.flow.Number, math.MaxInt16)), nil, true
	switch step.Action {
	case calls.Reject:
		e.done(c, step, rejection(step.Err))
		return
	case calls.Done: // it was too late when the caller came to it
		e.done(c, step, timedOut)
		return
	case calls.Run, calls.Wait:
	}
	e.witness.attempt(c)
	if limit := e.giveUp(c); limit > 0 {
		e.push(limit-e.now, expire, c.ref)
	}
	e.connect(c)
}

// giveUp returns when an attempt is given up, 0 for never.
func (e *edge) giveUp(c *call) (at int64) {
	if !c.call.Deadline.IsZero() {
		at = int64(c.call.Deadline.Sub(epoch))
	}
	if t := int64(e.config.Timeout); t > 0 && (at == 0 || e.now+t < at) {
		at = e.now + t
	}
	return at
}

// connect sends the attempt, once there is a connection for it.
func (e *edge) connect(c *call) {
	if e.config.Connections > 0 {
		a := e.callers[c.client].active
		if a.open >= int32(e.config.Connections) {
			a.queue.push(c.ref)
			return
		}
		a.open++
		c.open = true
	}
	e.send(c)
}

// disconnect gives the connection of an attempt to the next that waits for one.
func (e *edge) disconnect(c *call) {
	if !c.open {
		return
	}
	c.open = false
	a := e.callers[c.client].active
	a.open--
	for a.queue.n > 0 {
		if next := e.callOf(a.queue.oldest()); next != nil {
			e.connect(next)
			return
		}
	}
}

func (e *edge) send(c *call) {
	chosen := e.choose(c)
	t := e.to.tasks[chosen]
	c.flow.Use(t.name)
	r := e.takeRequest()
	r.task, r.caller, r.call = t, c.ref, c.call
	r.connect = e.greet(c.client, chosen)
	c.request, c.at = r, int32(chosen)
	c.attempts++
	r.factor = 1
	if e.group != nil {
		r.factor = e.group.config.CPUFactor
		e.group.sent(c)
	}
	if e.lost() {
		e.freeRequest(r)
		return
	}
	e.push(e.config.Latency.draw(e.network), reach, r.ref)
}

func (e *edge) lost() bool { return e.config.Loss > 0 && e.network.float() < e.config.Loss }

// greet returns the processor time that a new connection takes at the task.
func (e *edge) greet(caller int32, task int) int64 {
	c, bit := &e.callers[caller], e.bit(caller, task)
	if c.connected&bit != 0 {
		return 0
	}
	c.connected |= bit
	return int64(e.to.config.Connect)
}

// answered ends an attempt with what the task has said.
func (e *edge) answered(c *call, a reply, hint time.Duration, ratio shed.Ratio) {
	c.flow.Accepts = ratio.Float()
	f := a.failure(hint)
	if a == unreachable {
		e.callers[c.client].connected &^= e.bit(c.client, int(c.at))
	}
	e.eject(c, f)
	e.disconnect(c)
	e.use(c.client)
	if a == served {
		e.done(c, c.flow.Succeed(e.clock), good)
		return
	}
	e.done(c, c.flow.Fail(e.clock, calls.Failure{Err: attemptError(f), Failure: f}), replies[a].outcome)
}

// expired ends an attempt that has taken too long.
func (e *edge) expired(c *call) {
	e.leave(c)
	f := calls.Failure{Err: attemptError{Timeout: true, Unanswered: true}, Failure: fault.Failure{Timeout: true, Unanswered: true}}
	if d := c.call.Deadline; !d.IsZero() && !e.clock.Before(d) { // and not that of the attempt
		f.Err, f.ContextErr = context.DeadlineExceeded, context.DeadlineExceeded
	}
	e.use(c.client)
	e.done(c, c.flow.Fail(e.clock, f), timedOut)
}

// withdraw ends a call that its caller needs no more, as the end of its context does.
func (e *edge) withdraw(c *call) {
	if c.trying {
		e.leave(c)
		e.use(c.client)
		c.flow.Fail(e.clock, calls.Failure{Err: context.Canceled, ContextErr: context.Canceled, Failure: fault.Failure{Unanswered: true}})
		e.settled(c)
	} else {
		c.flow.Stop(context.Canceled)
	}
	e.freeCall(c)
}

// leave gives up an attempt, and the connection that it was sent on.
func (e *edge) leave(c *call) {
	if r := c.request; r != nil {
		e.callers[c.client].connected &^= e.bit(c.client, int(c.at))
		if e.config.Leave && e.callOf(r.caller) == c {
			e.push(e.config.Latency.draw(e.network), leave, r.ref)
		}
	}
	e.disconnect(c)
}

// done ends an attempt. As the stack says, another one follows or the call ends with an outcome:
// then the request that it was made for goes on. If the call was given up, that request is marked,
// as a server of this package's callers does.
func (e *edge) done(c *call, step calls.Step, o outcome) {
	e.settled(c)
	if step.Action == calls.Wait {
		e.later(c, step.Wait)
		return
	}
	parent := e.requestOf(c.parent)
	e.witness.ended(c, o)
	if e.group != nil {
		e.group.ended(c, o)
	}
	e.freeCall(c)
	if parent == nil {
		return
	}
	if step.Final() {
		parent.final.Set()
	}
	parent.task.resume(parent, o)
}

// drop ends a call whose caller is dead.
func (e *edge) drop(c *call) {
	e.use(c.client)
	if c.trying {
		c.flow.Abort()
		e.settled(c)
	} else {
		c.flow.Stop(context.Canceled)
	}
	e.freeCall(c)
}
