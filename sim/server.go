package sim

import (
	"strconv"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/internal/requests"
	"github.com/seed90641741/spillway/shed"
)

// A service is tasks that are alike.
type service struct {
	*Sim

	config  *Service
	tasks   []*task
	calls   []*edge // of its tasks, as callers
	random  *stream // service times
	sums    []Load  // by window
	series  []Load  // by slot
	crashed int     // of its tasks, times
	index   int     // among the services
	scaler  scaler
}

// A task is a server process: processors that run what is ready from one queue,
// each piece of work to its end.
type task struct {
	*service

	index  int // among the tasks of the service
	number int // among all tasks
	name   string
	policy *stream // randomness of the server policies
	process

	down, frozen, rejects, drops, gone int // faults that say so
	slow                               float64
	held                               queue[event] // what is to happen when it goes on
	life                               uint32       // how often it was removed
	stood                              int64        // for how long it has stood still, ever
	since                              int64        // up to when processor time was counted
}

// A process is what a task loses when it dies.
type process struct {
	core     *requests.Core  // the server policies; nil: none
	wakes    bool            // requests may leave their queues
	ready    runQueue        // requests that wait for a processor
	rejected queue[*request] // those that a processor has to reject, which goes first
	slots    queue[ref]      // those that wait for a slot
	holding  int             // slots in use
	working  int             // processors in use
	present  int             // requests that have arrived and not ended
	meter    meter
}

// A request is what one attempt of a call is to the task.
type request struct {
	ref // of itself: the generation grows when the request ends

	task    *task
	caller  ref
	arrived bool

	call    spillway.Call
	connect int64                 // processor time for a new connection
	factor  float64               // of the processor time
	work    int64                 // processor time left
	cost    int64                 // processor time that it takes once admitted
	ends    int64                 // when the processor has done it, if the task does not stand still
	stood   int64                 // for how long it had when that began
	then    func(*task, *request) // what happens after that
	next    int                   // of the edges to other services
	made    int                   // calls of this edge
	open    int                   // of these, calls under way
	calls   []*call               // that were made, and may have ended
	final   final.Mark            // a call for it was given up
	left    bool                  // the caller is gone
	queues  bool                  // for a slot
	until   int64                 // the maximum wait for the server policies is over
	reply   reply
	hint    time.Duration
	ratio   shed.Ratio

	admission requests.Admission
}

func (s *Sim) newService(c *Service) *service {
	v := &service{Sim: s, config: c, random: s.stream(), sums: make([]Load, len(s.config.Windows)), series: make([]Load, s.slots)}
	policy := s.stream()
	v.index, v.scaler.tasks = len(s.services), c.Tasks
	for i := range c.most() {
		t := &task{service: v, index: i, number: len(s.tasks), name: c.Name + "-" + strconv.Itoa(i), slow: 1, policy: policy}
		if i >= c.Tasks { // it is not started yet
			t.gone = 1
		}
		s.tasks = append(s.tasks, t)
		t.renew()
		v.tasks = append(v.tasks, t)
	}
	return v
}

// renew makes a new process.
func (t *task) renew() {
	core, _ := newCore(t.config, t.policy, t) // was tried once
	t.process = process{core: core, ready: runQueue{discipline: t.config.Discipline}, meter: meter{sampled: t.now}}
}

// reached is when a request arrives.
func (t *task) reached(r *request) {
	switch {
	case t.drops > 0, r.left:
		t.freeRequest(r)
		return
	case t.down > 0:
		r.reply = unreachable
		t.respond(r)
		return
	}
	r.arrived = true
	t.present++
	t.count(func(l *Load) { l.Arrived++; l.Present = max(l.Present, t.present) })
	if t.crashes() {
		return
	}
	switch {
	case t.rejects > 0, t.core == nil && t.config.Queue > 0 && t.present > t.config.Queue:
		t.rejectAtCost(r)
	case t.core != nil:
		r.then, r.work = (*task).examine, int64(t.config.Rejection)+r.connect
		t.ready.push(r)
	default:
		t.compute(r, r.connect)
		t.ready.push(r)
	}
	t.schedule()
}

// compute makes the own work of a request what it does next on a processor.
func (t *task) compute(r *request, before int64) {
	r.cost = nanoseconds(float64(t.config.CPU.draw(t.random)) * r.factor)
	r.then, r.work = (*task).ask, before+r.cost
}

// rejectAtCost rejects a request as overloaded, which takes processor time.
func (t *task) rejectAtCost(r *request) {
	r.then, r.work, r.reply = (*task).end, int64(t.config.Rejection)+r.connect, overloaded
	if r.work == 0 && t.frozen == 0 {
		t.end(r)
		return
	}
	t.rejected.push(r)
}

// schedule gives work to processors that have none.
func (t *task) schedule() {
	for t.working < t.config.Processors && t.frozen == 0 {
		var r *request
		switch {
		case t.rejected.n > 0:
			r = t.rejected.oldest()
		case t.ready.n > 0:
			r = t.ready.pop()
		default:
			if r = t.next(); r == nil {
				return
			}
		}
		t.run(r)
	}
}

// run gives a request a processor until it has had its time.
func (t *task) run(r *request) {
	t.account()
	t.working++
	takes := nanoseconds(float64(r.work) * t.slow)
	r.ends, r.stood = t.now+takes, t.stood
	t.push(takes, worked, r.ref)
}

// worked is when a request has had its time on a processor.
func (t *task) worked(r *request) {
	t.account()
	if left := r.ends + t.stood - r.stood - t.now; left > 0 { // it has stood still meanwhile
		t.push(left, worked, r.ref)
		return
	}
	t.working--
	r.then(t, r)
	t.schedule()
}

// account counts the processor time since it last did.
func (t *task) account() {
	from := t.since
	t.since = t.now
	if t.working == 0 || from == t.now {
		return
	}
	if t.frozen > 0 {
		t.stood += t.now - from
		return
	}
	t.meter.used += int64(t.working) * (t.now - from)
	t.countWork(from, t.now, int64(t.working))
}

// better reports whether t is to be preferred to o.
func (t *task) better(o *task) bool {
	if here, there := t.gone == 0, o.gone == 0; here != there {
		return here
	}
	return t.present < o.present
}

// ask makes the next calls to another service, or goes on after the last one.
func (t *task) ask(r *request) {
	if r.next == len(t.calls) || r.left {
		t.wait(r)
		return
	}
	e, n := t.calls[r.next], 1
	if e.config.AtOnce {
		n = e.config.Times
	}
	if r.made += n; r.made == e.config.Times {
		r.next, r.made = r.next+1, 0
	}
	what, id := r.call, r.ref
	what.Attempt = 0
	r.open, r.calls = n, r.calls[:0]
	for i := 0; i < n && r.ref == id && r.reply == 0; i++ { // until one fails at once
		e.begin(int32(t.index), what, id, false)
	}
}

// resume takes in the result of a call to another service.
func (t *task) resume(r *request, o outcome) {
	r.open--
	if o == good {
		r.call.Progress = max(r.call.Progress, r.call.Progress+1) // at most 255
	}
	if o == good || t.config.OnFailure == Degrade {
		if r.open == 0 {
			t.ask(r)
		}
		return
	}
	t.withdraw(r)
	switch {
	case t.config.OnFailure == Retryable:
		t.finish(r, overloaded)
	case r.final.IsSet():
		t.finish(r, hopeless)
	default:
		t.finish(r, failing)
	}
}

// withdraw gives up the calls of a request that has failed, or whose caller is gone.
func (t *task) withdraw(r *request) {
	r.open = 0
	for _, c := range r.calls {
		if c.parent == r.ref {
			c.edge.withdraw(c)
		}
	}
}

// wait waits for something else than a processor.
func (t *task) wait(r *request) {
	switch {
	case t.config.Wait == Dist{}:
		t.finish(r, served)
	case t.config.Slots > 0 && t.holding >= t.config.Slots:
		r.queues = true
		t.slots.push(r.ref)
	default:
		t.hold(r)
	}
}

func (t *task) hold(r *request) {
	r.queues = false
	t.holding++
	t.push(nanoseconds(float64(t.config.Wait.draw(t.random))*t.slow), waited, r.ref)
}

// waited is when a request has waited for something else.
func (t *task) waited(r *request) {
	t.holding--
	t.finish(r, served)
	for t.slots.n > 0 {
		if next := t.requestOf(t.slots.oldest()); next != nil {
			t.hold(next)
			break
		}
	}
	t.schedule()
}

// finish ends a request that was admitted.
func (t *task) finish(r *request, a reply) {
	o := spillway.OutcomeServed
	if a != served {
		o = spillway.OutcomeFailed
	}
	if r.left {
		o = spillway.OutcomeAbandoned
	}
	r.admission.Used(t.clock, time.Duration(r.cost))
	t.wake(r.admission.Done(t.clock, o))
	r.reply = a
	t.end(r)
	t.schedule()
}

// end ends a request with its reply.
func (t *task) end(r *request) {
	t.countReply(r.reply)
	t.present--
	t.respond(r)
}

// respond sends the reply on its way.
func (t *task) respond(r *request) {
	r.arrived = false
	if t.config.AcceptRatio {
		r.ratio = t.core.AcceptRatio(r.call.Criticality)
	}
	t.witness.replied(r)
	e := t.Sim.calls[r.caller.id].edge
	if r.left || e.lost() || t.callOf(r.caller) == nil {
		t.freeRequest(r)
		return
	}
	t.push(e.config.Latency.draw(e.network), answer, r.ref)
}
