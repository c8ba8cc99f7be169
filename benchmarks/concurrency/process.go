package main

import (
	"math/rand/v2"

	"github.com/seed90641741/spillway"
)

// A Request is one call of a client to the process under test.
type Request struct {
	Key      int
	Class    spillway.Criticality
	Service  Time // what the backend needs for it
	Deadline Time // after Sent; an answer is good until then
	Patience Time // after Sent; when its client leaves. Zero: never
	// Stream says that the request stays open for its client: it is good if it
	// begins to be served before its deadline, however long it then takes.
	Stream   bool
	Backend  *Backend
	Sent     Time
	Admitted Time // when the algorithm let it run
	// Slot is for the algorithm.
	Slot any

	state    state
	left     bool                      // the client has left
	answered func(r *Request, ok bool) // nil: the client does not care
}

// state is where a request is.
type state uint8

const (
	waiting state = iota // for the algorithm to decide
	queued               // at the backend
	served               // being served
	ended
)

// An Algorithm decides which requests run. For each request that arrives it
// calls [Process.Run] or [Process.Reject] once, at once or later. It is called
// by one goroutine.
type Algorithm interface {
	// Arrive is called for each new request.
	Arrive(r *Request)
	// Finish is called when a request that ran has ended. Served is false if its
	// client had left.
	Finish(r *Request, served bool)
	// Leave is called when the client of a request leaves that neither runs
	// nor was rejected.
	Leave(r *Request)
	// Expire is called at the time for which [Process.Timer] asked, unless r
	// has ended.
	Expire(r *Request)
	// Heartbeat is called every 10 ms, and late if the process does not run.
	Heartbeat()
}

// Maker makes an algorithm for a process.
type Maker func(p *Process) Algorithm

// A Process is the process under test: requests arrive at it, an [Algorithm]
// decides which of them run, and a backend serves these.
type Process struct {
	now       Time
	end       Time // no requests are sent from then on
	over      Time // end of the run
	silent    bool // clients do not tell their deadlines
	seed      uint64
	streams   uint64 // of random numbers, in use
	agenda    agenda
	algorithm Algorithm
	stalls    []span // nothing runs
	starved   []span // what the process does is late
	late      *rand.Rand
	result    Result
}

// A span of time, without its end.
type span struct{ from, to Time }

func (s span) has(t Time) bool { return t >= s.from && t < s.to }

const heartbeat = 10 * ms

// simulate runs a scenario once.
func simulate(sc *Scenario, seed uint64, make Maker) *Result {
	p := &Process{seed: seed, end: sc.End, over: sc.End + sc.Grace, silent: sc.Silent}
	if sc.Grace == 0 {
		p.over += 30 * sec
	}
	p.late = p.random()
	sc.Fill(p)
	p.algorithm = make(p)
	p.run()
	return &p.result
}

// random returns a source of random numbers of its own for each caller, so that what
// one of them draws changes nothing for the others: all algorithms meet the same
// arrivals.
func (p *Process) random() *rand.Rand {
	p.streams++
	return rand.New(rand.NewPCG(p.seed, p.streams))
}

// Now returns the virtual time.
func (p *Process) Now() Time { return p.now }

// CPU returns the share of the processors' time that is used.
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

// at schedules f, which gets the time for which it was scheduled. While the
// process is stalled that is earlier than Now.
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
		// What happens during a stall is seen at its end, in order.
		p.now = max(p.now, p.awake(e.at))
		switch e.kind {
		case call:
			e.f(e.at)
		case finish:
			p.finish(e.r)
		case leave:
			p.leave(e.r)
		case expire:
			if e.r.state != ended {
				p.algorithm.Expire(e.r)
			}
		}
	}
}

// awake returns when the process runs at or after t.
func (p *Process) awake(t Time) Time {
	for _, s := range p.stalls {
		if s.has(t) {
			return s.to
		}
	}
	return t
}

// lateness returns how late the process is with what it does at t.
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

// send lets a request arrive that its client sent at the time at.
func (p *Process) send(at Time, r *Request) {
	r.Sent = at
	p.result.offered(r)
	if r.Patience > 0 {
		p.agenda.add(event{at: at + r.Patience, kind: leave, r: r})
	}
	p.algorithm.Arrive(r)
}

// Run lets a request run that waits for the algorithm.
func (p *Process) Run(r *Request) {
	r.Admitted = p.now
	b := r.Backend
	if b.busy >= b.slots {
		r.state = queued
		b.enqueue(r)
		return
	}
	p.serve(r)
}

// Reject rejects a request that waits for the algorithm.
func (p *Process) Reject(r *Request) {
	r.state = ended
	p.result.rejected(r)
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
	p.agenda.add(event{at: p.now + took, kind: finish, r: r})
}

func (p *Process) finish(r *Request) {
	r.state = ended
	r.Backend.busy--
	p.pump(r.Backend)
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

// leave is when a client stops waiting. What is being served goes on: nothing
// tells the backend.
func (p *Process) leave(r *Request) {
	if r.state == ended {
		return
	}
	r.left = true
	p.result.Left++
	switch r.state {
	case waiting:
		r.state = ended
		p.algorithm.Leave(r)
	case queued:
		r.state = ended
		p.algorithm.Finish(r, false)
	case served, ended:
	}
}

// Deadline returns until when an answer to r is of use, where its client tells.
func (p *Process) Deadline(r *Request) (t Time, ok bool) {
	return r.Sent + r.Deadline, r.Deadline > 0 && !p.silent
}
