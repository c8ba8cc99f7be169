package sim

import (
	"slices"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/ejection"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/throttle"
)

// An edge is all callers of one kind, and the service that they call. It does for
// each of them what package egress does: calls are tried until the strategy gives
// up, and each attempt has to pass the throttle and the in-flight limit.
type edge struct {
	*Sim

	config   *Edge
	index    int32
	to       *service
	group    *group // nil where the callers are tasks
	clients  []client
	strategy retry.Strategy
	purse    purse
	bucket   budget.Config
	policies policies
	network  *stream                       // latency, loss
	choice   *stream                       // of tasks
	ejected  map[int32][]ejection.Ejection // of callers to whom a task has said when to come back, by the place in the subset
}

// A client is one caller. Its policies are made when they are needed, and let go
// when they know no more than new ones.
type client struct {
	bucket    *budget.Bucket // nil: as new
	active    *active        // nil: as new
	connected uint64         // tasks of the subset
	turn      uint32         // of the round robin
	good      uint32         // useful answers
}

// The gates of an attempt, in the order of package egress.
const (
	throttleGate = iota
	inflightGate
	egressGates
)

// notSent is in place of a task.
const notSent = -1

// A call is one that is under way.
type call struct {
	edge     *edge
	token    retry.Token
	call     spillway.Call
	tickets  [egressGates]spillway.Ticket
	intended int64 // when the call was to begin
	started  int64 // when the attempt was
	client   int32
	attempts int32         // that were sent
	at       int32         // task that the attempt was sent to, notSent if it waits for a connection
	gen      uint32        // grows with each attempt, and when the call ends
	parent   ticketFor     // the request that waits for this call
	request  *request      // of the attempt; only for whoever leaves
	last     outcome       // of the last attempt
	windows  uint32        // that the call is in
	failure  fault.Failure // of the last attempt
	open     bool          // has a connection
	trying   bool          // an attempt is under way, not the wait for one
	again    bool          // its client makes another one after it
}

// task returns the one that makes the call, nil if it is made by a client.
func (c *call) task() *task {
	if r := c.parent.r; r != nil && r.gen == c.parent.gen {
		return r.task
	}
	return nil
}

func (s *Sim) newEdge(c *Edge, callers int, g *group) *edge {
	e := &edge{
		Sim: s, config: c, index: int32(len(s.edges)), group: g, bucket: c.Retry.bucket(),
		to: s.services[s.config.service(c.To)], clients: make([]client, callers),
	}
	e.network, e.choice = s.stream(), s.stream()
	e.purse.edge = e
	e.strategy, _, _ = c.Retry.strategy(&e.purse, s.stream().float) // was tried once
	e.policies.configure(c.Egress, s.stream().float)
	if e.to.config.AcceptRatio && e.policies.keep > 0 {
		e.policies.keep = max(e.policies.keep, int64(throttle.AdviceLifetime))
	}
	s.edges = append(s.edges, e)
	return e
}

// begin makes a call, after which the client of a loop makes another one if again.
func (e *edge) begin(client int32, intended int64, what spillway.Call, parent *request, again bool) {
	id := e.takeCall()
	c := e.calls[id]
	what.Key, what.Kind = e.config.To, e.config.Kind
	*c = call{edge: e, call: what, intended: intended, client: client, gen: c.gen, again: again}
	if parent != nil {
		c.parent = ticketFor{parent, parent.gen}
	}
	if e.group != nil {
		c.windows = e.group.offer(c)
	}
	e.purse.payer = client
	c.token = e.strategy.Begin(what)
	e.later(id, c.token.Delay())
}

// later makes the next attempt after a delay.
func (e *edge) later(id uint32, d time.Duration) {
	if d > 0 {
		e.push(int64(d), send, id, e.calls[id].gen)
		return
	}
	e.attempt(id)
}

// attempt makes an attempt, if all gates admit it.
func (e *edge) attempt(id uint32) {
	c := e.calls[id]
	c.call.Attempt, c.started, c.at, c.trying = int32(c.token.Attempt().Number), e.now, notSent, true
	if refused, err := e.admit(c); refused != 0 {
		e.settle(c, spillway.Abandoned)
		e.purse.payer = c.client
		_ = e.strategy.Release(c.token, fault.Failure{Unsent: true}) // the token is this attempt's own
		e.givenUp(c, err)
		e.end(id, refused)
		return
	}
	if e.witness.attempt != nil {
		e.witness.attempt(c)
	}
	switch limit := e.giveUp(c); {
	case limit > e.now:
		e.push(limit-e.now, expire, id, c.gen)
	case limit > 0: // it was too late when the caller came to it
		e.expired(id)
		return
	}
	e.connect(id)
}

// admit asks each gate in turn, and returns what becomes of a call that one
// refuses.
func (e *edge) admit(c *call) (refused outcome, err error) {
	a, config := e.wake(c.client), &e.config.Egress
	if config.ThrottleMode != spillway.Off {
		t, err := a.admit(e.clock, c.call)
		if c.tickets[throttleGate] = t; err != nil && config.ThrottleMode == spillway.Enforce {
			return refusedThrottle, err
		}
	}
	if config.InflightMode != spillway.Off {
		t, err := a.limiter.Admit(e.clock, c.call)
		if c.tickets[inflightGate] = t; err != nil && config.InflightMode == spillway.Enforce {
			return refusedInflight, err
		}
	}
	return 0, nil
}

// settle tells the gates what became of an attempt, as of when it began.
func (e *edge) settle(c *call, o spillway.Outcome) {
	for i := range c.tickets {
		c.tickets[i].Settle(e.at(c.started), o)
	}
	c.gen++
	c.trying = false
	e.rest(c.client)
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
func (e *edge) connect(id uint32) {
	c := e.calls[id]
	if e.config.Connections > 0 {
		a := e.clients[c.client].active
		if a.open >= int32(e.config.Connections) {
			a.queue.push(ticket{id, c.gen})
			return
		}
		a.open++
		c.open = true
	}
	e.send(c, id)
}

// disconnect gives the connection of an attempt to the next that waits for one.
func (e *edge) disconnect(c *call) {
	if !c.open {
		return
	}
	c.open = false
	a := e.clients[c.client].active
	a.open--
	for a.queue.n > 0 {
		next := a.queue.oldest()
		if n := e.calls[next.id]; n.gen == next.gen {
			a.open++
			n.open = true
			e.send(n, next.id)
			return
		}
	}
}

func (e *edge) send(c *call, id uint32) {
	chosen := e.choose(c)
	t := e.to.tasks[chosen]
	c.token.Attempt().Use(t.name)
	r := e.takeRequest()
	r.task, r.caller, r.id, r.callGen, r.call = t, c, id, c.gen, c.call
	r.connect = e.greet(c.client, chosen)
	c.request, c.at = r, int32(chosen)
	c.attempts++
	if e.group != nil {
		e.group.sent(c)
	}
	if e.lost() {
		e.freeRequest(r)
		return
	}
	e.push(e.config.Latency.draw(e.network), reach, r.place, r.gen)
}

func (e *edge) lost() bool { return e.config.Loss > 0 && e.network.float() < e.config.Loss }

// greet returns the processor time that a new connection takes at the task.
func (e *edge) greet(caller int32, task int) int64 {
	cost := int64(e.to.config.Connect)
	if cost == 0 {
		return 0
	}
	c, bit := &e.clients[caller], e.bit(caller, task)
	if c.connected&bit != 0 {
		return 0
	}
	c.connected |= bit
	return cost
}

// bit is that of the connection to a task.
func (e *edge) bit(caller int32, task int) uint64 { return 1 << e.place(caller, task) }

// place is the place of a task in the subset of a caller.
func (e *edge) place(caller int32, task int) int {
	if e.config.Subset == len(e.to.tasks) {
		return task
	}
	n := len(e.to.tasks)
	return (task - int(caller)*e.config.Subset%n + n) % n
}

// answered ends an attempt with what the task has said.
func (e *edge) answered(id uint32, a reply, hint time.Duration, ratio shed.Ratio) {
	c := e.calls[id]
	e.advise(c, a, ratio)
	c.last = a.outcome()
	f := a.failure(hint)
	if a == unreachable {
		e.clients[c.client].connected &^= e.bit(c.client, int(c.at))
	}
	e.eject(c, f)
	e.disconnect(c)
	e.settle(c, outcomeOf(a == served, f))
	e.purse.payer = c.client
	if a == served {
		_ = e.strategy.Succeed(c.token) // as above
		e.end(id, good)
		return
	}
	e.failed(id, f)
}

// expired ends an attempt that has taken too long.
func (e *edge) expired(id uint32) {
	c := e.calls[id]
	c.last = timedOut
	f := fault.Failure{Timeout: true}
	if c.at != notSent {
		e.clients[c.client].connected &^= e.bit(c.client, int(c.at))
	}
	if r := c.request; e.config.Leave && r != nil && r.of(c) {
		e.push(e.config.Latency.draw(e.network), leave, r.place, r.gen)
	}
	e.disconnect(c)
	e.settle(c, outcomeOf(false, f))
	e.purse.payer = c.client
	e.failed(id, f)
}

// failed asks the strategy whether there is to be another attempt.
func (e *edge) failed(id uint32, f fault.Failure) {
	c := e.calls[id]
	c.failure = f
	next, err := e.strategy.Refresh(e.clock, c.token, f)
	if err != nil {
		e.givenUp(c, err)
		e.end(id, c.last)
		return
	}
	c.token = next
	e.later(id, next.Delay())
}

// givenUp marks the request that a call was made for, as package egress does, unless why
// there is no other attempt leaves that to the caller of the task.
func (e *edge) givenUp(c *call, why error) {
	r := c.parent.r
	if r == nil || r.gen != c.parent.gen {
		return
	}
	var last error
	if c.attempts > 0 {
		last = (*attemptError)(&c.failure)
	}
	if final.Error(retry.Explain(last, why, int(c.attempts))) {
		r.final.Set()
	}
}

// outcomeOf says what an attempt tells of the backend's load, as package egress
// does.
func outcomeOf(ok bool, f fault.Failure) spillway.Outcome {
	switch {
	case ok:
		return spillway.Served
	case f.OverQuota():
		return spillway.OverQuota
	case f.Overload, f.Unprocessed:
		return spillway.Overloaded
	case f.Timeout:
		return spillway.TimedOut
	default:
		return spillway.Failed
	}
}

// end ends a call.
func (e *edge) end(id uint32, o outcome) {
	c := e.calls[id]
	parent := c.parent
	if e.witness.ended != nil {
		e.witness.ended(c, o)
	}
	if e.group != nil {
		e.group.ended(c, o)
	}
	c.token, c.parent, c.request = retry.Token{}, ticketFor{}, nil
	c.gen++
	e.freeCall(id)
	if r := parent.r; r != nil && r.gen == parent.gen {
		r.task.resume(r, o)
	}
}

// drop ends a call whose caller is dead.
func (e *edge) drop(id uint32) {
	c := e.calls[id]
	if c.trying {
		e.settle(c, spillway.Abandoned)
	}
	e.purse.payer = c.client
	_ = e.strategy.Release(c.token, fault.Failure{Unsent: true}) // as above
	c.token, c.parent, c.request = retry.Token{}, ticketFor{}, nil
	c.gen++
	e.freeCall(id)
}

// choose returns the task that is to get the next request.
func (e *edge) choose(c *call) (task int) {
	if e.config.Retarget {
		avoid := c.token.Attempt().Deprioritized()
		for range 4 * min(len(avoid), e.config.Subset) {
			if task = e.pick(c); !slices.Contains(avoid, e.to.tasks[task].name) {
				return task
			}
		}
	}
	return e.pick(c)
}

// eject leaves a task out that has refused and said for how long.
func (e *edge) eject(c *call, f fault.Failure) {
	if f.Scope != fault.ScopeTask || !f.HasRetryAfter {
		return
	}
	all := e.ejected[c.client]
	if all == nil {
		if e.ejected == nil {
			e.ejected = make(map[int32][]ejection.Ejection)
		}
		all = make([]ejection.Ejection, e.config.Subset)
		e.ejected[c.client] = all
	}
	all[e.place(c.client, int(c.at))].Failed(e.clock, f)
}

// out reports whether a task is left out by a caller.
func (e *edge) out(caller int32, task int) bool {
	all := e.ejected[caller]
	return all != nil && all[e.place(caller, task)].Active(e.clock)
}

// pick chooses no task that is known to be gone, or has asked to be left out, unless all
// have.
func (e *edge) pick(c *call) (task int) {
	for range 16 {
		if task = e.draw(c); e.to.tasks[task].gone == 0 && !e.out(c.client, task) {
			return task
		}
	}
	n := e.config.Subset
	first := e.choice.below(n)
	for i := range n {
		if t := e.member(c.client, (first+i)%n); e.to.tasks[t].gone == 0 {
			return t
		}
	}
	return task
}

func (e *edge) draw(c *call) int {
	n := e.config.Subset
	switch e.config.Balance {
	case RoundRobin:
		caller := &e.clients[c.client]
		caller.turn++
		return e.member(c.client, (int(caller.turn)+int(c.client))%n)
	case LeastBusy:
		a, b := e.member(c.client, e.choice.below(n)), e.member(c.client, e.choice.below(n))
		if e.to.tasks[b].better(e.to.tasks[a]) {
			return b
		}
		return a
	default:
		return e.member(c.client, e.choice.below(n))
	}
}

// member returns the task at place i of a caller's subset. Subsets follow one
// another around the tasks.
func (e *edge) member(caller int32, i int) int {
	if e.config.Subset == len(e.to.tasks) {
		return i
	}
	return (int(caller)*e.config.Subset + i) % len(e.to.tasks)
}
