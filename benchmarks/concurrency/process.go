package main

import (
	"math/rand/v2"

	"github.com/seed90641741/spillway"
)

// A Request is one call of a client to the process under test.
type Request struct {
	Key      int
	Class    spillway.Criticality
	Service  Time // at the backend
	Deadline Time // after Sent; an answer is good until then. Zero: always
	Patience Time // after Sent; when its client leaves. Zero: never
	Body     Time // how long it waits for its client once it runs, before its service
	// Stream marks a request that stays open for its client. It is good if its
	// service starts before the deadline.
	Stream   bool
	Backend  *Backend
	Sent     Time
	Admitted Time // when the algorithm let it run
	// Slot is for the algorithm.
	Slot any

	state    state
	left     bool                      // the client has left
	gone     bool                      // and the process with it, while its backend works on
	timedOut bool                      // it ended at the deadline that it was sent with
	answered func(r *Request, ok bool) // nil: the client does not care
}

// state is where a request is.
type state uint8

const (
	waiting state = iota // for the algorithm to decide
	reading              // the body from the client
	queued               // at the backend
	served               // being served
	ended
)

// An Algorithm decides which requests run. For each request it calls
// [Process.Run] or [Process.Reject] once, during Arrive or later. All calls come from one
// goroutine.
type Algorithm interface {
	// Arrive is called for each new request.
	Arrive(r *Request)
	// Finish is called when a request that ran has ended. Served is false if its
	// client had left.
	Finish(r *Request, served bool)
	// Leave is called when a client leaves whose request waits for a decision. The request
	// must neither run nor be rejected afterwards.
	Leave(r *Request)
	// Expire is called at the time given to [Process.Timer], unless r has ended.
	Expire(r *Request)
	// Heartbeat is called every 10 ms, late if the process does not run.
	Heartbeat()
}

// A suspender is an Algorithm that does not count requests while they wait for their client.
type suspender interface {
	Suspend(r *Request)
	Resume(r *Request)
}

// Maker makes an algorithm for a process.
type Maker func(p *Process) Algorithm

// A Process is the process under test: requests arrive at it, an [Algorithm]
// decides which of them run, and a backend serves these.
type Process struct {
	now       Time
	end       Time // no requests are sent from then on
	over      Time // end of the run
	silent    bool // clients send no deadlines
	strict    bool // requests end at their deadlines
	seed      uint64
	sources   uint64 // of random numbers, so far
	agenda    agenda
	algorithm Algorithm
	stalls    []span // the process does not run
	starved   []span // the process is short of CPU and late
	late      *rand.Rand
	result    Result
}

// A span of time, without its end.
type span struct{ from, to Time }

func (s span) has(t Time) bool { return t >= s.from && t < s.to }

const heartbeat = 10 * ms

// simulate runs a scenario once.
func simulate(sc *Scenario, seed uint64, maker Maker) *Result {
	p := &Process{seed: seed, end: sc.End, over: sc.End + sc.Grace, silent: sc.Silent, strict: sc.Strict}
	if sc.Grace == 0 {
		p.over += 30 * sec
	}
	p.late, p.result.warm, p.result.end = p.random(), sc.Warm, sc.End
	sc.Fill(p)
	p.algorithm = maker(p)
	p.run()
	return &p.result
}

// random returns a new source of random numbers. With a source for each use, all
// algorithms get the same arrivals.
func (p *Process) random() *rand.Rand {
	p.sources++
	return rand.New(rand.NewPCG(p.seed, p.sources))
}

// Now returns the virtual time.
func (p *Process) Now() Time { return p.now }

// CPU returns the CPU utilization, 0 to 1.
func (p *Process) CPU() float64 {
	if p.isStarved(p.now) {
		return 0.95
	}
	return 0.1
}

func (p *Process) isStarved(t Time) bool {
	for _, s := range p.starved {
		if s.has(t) {
			return true
		}
	}
	return false
}

// at schedules f for the time t, which is also its argument. After a stall t is
// earlier than Now.
func (p *Process) at(t Time, f func(at Time)) { p.agenda.add(event{at: t, kind: call, f: f}) }

// Timer asks for a call of [Algorithm.Expire].
func (p *Process) Timer(t Time, r *Request) { p.agenda.add(event{at: t, kind: expire, r: r}) }

func (p *Process) run() {
	p.at(0, p.beat)
	for len(p.agenda.heap) > 0 {
		e := p.agenda.next()
		if e.at > p.over {
			break
		}
		// The process sees the events of a stall at its end, in order.
		p.now = max(p.now, p.awake(e.at))
		switch e.kind {
		case call:
			e.f(e.at)
		case body:
			p.read(e.r)
		case finish:
			p.finish(e.r)
		case leave:
			p.leave(e.r)
		case deadline:
			p.timeOut(e.r)
		case expire:
			if e.r.state != ended {
				p.algorithm.Expire(e.r)
			}
		}
	}
}

// awake returns the first time from t on at which the process runs.
func (p *Process) awake(t Time) Time {
	for _, s := range p.stalls {
		if s.has(t) {
			return s.to
		}
	}
	return t
}

// lateness returns the delay of what the process does at t.
func (p *Process) lateness(t Time) Time {
	if !p.isStarved(t) {
		return 0
	}
	return 100*ms + Time(p.late.Float64()*float64(200*ms))
}

func (p *Process) beat(Time) {
	p.algorithm.Heartbeat()
	if next := p.now + heartbeat; next < p.over {
		p.at(next+p.lateness(next), p.beat)
	}
}

// send delivers a request that its client sent at the time at.
func (p *Process) send(at Time, r *Request) {
	r.Sent = at
	p.result.offered(r)
	if r.Patience > 0 {
		p.agenda.add(event{at: at + r.Patience, kind: leave, r: r})
	}
	if p.strict && r.Deadline > 0 && !r.Stream {
		p.agenda.add(event{at: at + r.Deadline, kind: deadline, r: r})
	}
	p.algorithm.Arrive(r)
}

// Run runs a request. Algorithms call it.
func (p *Process) Run(r *Request) {
	r.Admitted = p.now
	if r.Body == 0 {
		p.forward(r)
		return
	}
	r.state = reading
	if s, ok := p.algorithm.(suspender); ok {
		s.Suspend(r)
	}
	p.agenda.add(event{at: p.now + r.Body, kind: body, r: r})
}

// read ends the wait for the body of a request.
func (p *Process) read(r *Request) {
	if r.state != reading {
		return
	}
	if s, ok := p.algorithm.(suspender); ok {
		s.Resume(r)
	}
	p.forward(r)
}

// forward sends a request to its backend.
func (p *Process) forward(r *Request) {
	b := r.Backend
	if b.busy >= b.slots {
		r.state = queued
		b.enqueue(r)
		return
	}
	p.serve(r)
}

// Reject rejects a request. Algorithms call it.
func (p *Process) Reject(r *Request) {
	r.state = ended
	p.result.rejected(r, p.now)
	if r.answered != nil && !r.left {
		r.answered(r, false)
	}
}

func (p *Process) serve(r *Request) {
	r.state = served
	r.Backend.busy++
	if r.Stream {
		p.result.answered(r, p.now)
	}
	took := Time(float64(r.Service)*r.Backend.slower) + p.lateness(p.now)
	if s := r.Backend.sharing; s != nil {
		p.share(s, r, took)
		return
	}
	p.agenda.add(event{at: r.Backend.finishes(p.now, took), kind: finish, r: r})
}

func (p *Process) finish(r *Request) {
	if r.state == ended {
		return
	}
	r.state = ended
	r.Backend.busy--
	p.pump(r.Backend)
	if r.gone {
		return
	}
	p.algorithm.Finish(r, !r.left)
	if r.left {
		return
	}
	if !r.Stream {
		p.result.answered(r, p.now)
	}
	if r.answered != nil {
		r.answered(r, true)
	}
}

// timeOut ends a request that runs at its deadline, wherever it is: its client hangs up, or told the deadline. A pool goes on with
// the next one.
func (p *Process) timeOut(r *Request) {
	switch {
	case r.state == waiting && p.silent:
		p.leave(r)
		return
	case r.state == waiting || r.state == ended:
		return
	}
	if r.Backend.worksOn {
		p.leave(r)
		return
	}
	inService := r.state == served
	r.state, r.timedOut = ended, !p.silent
	if inService {
		r.Backend.busy--
		if s := r.Backend.sharing; s != nil {
			p.unshare(s, r)
		}
		p.pump(r.Backend)
	}
	p.algorithm.Finish(r, false)
	if r.answered != nil && !r.left {
		r.answered(r, false)
	}
}

// pump serves queued requests while b has free slots.
func (p *Process) pump(b *Backend) {
	for r := b.dequeue(); r != nil; r = b.dequeue() {
		p.serve(r)
	}
}

// resize changes the slots of a pool.
func (p *Process) resize(b *Backend, slots int) {
	b.slots = slots
	p.pump(b)
}

// leave ends the wait of a client. A backend that already serves the request goes
// on with it.
func (p *Process) leave(r *Request) {
	if r.state == ended {
		return
	}
	r.left = true
	p.result.Left++
	if r.Backend.worksOn && (r.state == queued || r.state == served) {
		r.gone = true
		p.algorithm.Finish(r, false)
		return
	}
	switch r.state {
	case waiting:
		r.state = ended
		p.algorithm.Leave(r)
	case reading, queued:
		r.state = ended
		p.algorithm.Finish(r, false)
	case served, ended:
	}
	if r.answered != nil {
		r.answered(r, false)
	}
}

// Deadline returns the deadline of r that the process knows. Ok is false if
// clients send none.
func (p *Process) Deadline(r *Request) (t Time, ok bool) {
	return r.Sent + r.Deadline, r.Deadline > 0 && !p.silent
}
