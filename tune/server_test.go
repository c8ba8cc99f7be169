package tune_test

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/tune"
)

const ms = time.Millisecond

var t0 = time.Unix(1_700_000_000, 0)

// A gate is one of our limiters, with its limit in the unit of the Tuner.
type gate interface {
	admit(now time.Time) (spillway.Ticket, bool)
	set(limit float64)
}

type rateGate struct{ l *ratelimit.Limiter }

func (g rateGate) admit(now time.Time) (spillway.Ticket, bool) {
	ticket, err := g.l.Admit(now, spillway.Call{})
	return ticket, err == nil
}

func (g rateGate) set(limit float64) {
	if err := g.l.Update(ratelimit.Config{Rate: limit, BurstSeconds: 0.1}); err != nil {
		panic(err)
	}
}

type inflightGate struct{ l *inflight.Limiter }

func (g inflightGate) admit(now time.Time) (spillway.Ticket, bool) {
	ticket, err := g.l.Admit(now, spillway.Call{})
	return ticket, err == nil
}

func (g inflightGate) set(limit float64) { g.l.SetMaxInFlight(uint32(limit)) }

// A kind is a sort of backend: what a request occupies, and for how long.
type kind struct {
	name    string
	places  int           // processors, or slots of a pool, at capacity 1
	service time.Duration // mean
}

// Both serve 600 a second. The one computes, each request on a separate processor;
// the other waits for a slot of a pool.
var (
	computing = kind{"cpu", 6, 10 * ms}
	blocking  = kind{"blocked", 60, 100 * ms}
)

func (k kind) capacity() float64 { return float64(k.places) / k.service.Seconds() }

// A server is a backend behind a limiter, in explicit time. Requests that find no free
// place wait, oldest first, without a bound. One whose deadline has passed is left
// out when its turn comes, as by a server whose clients hang up; what was begun is done
// to its end.
type server struct {
	kind
	gate   gate
	random *rand.Rand
	now    time.Duration
	next   time.Duration // arrival
	ends   ends
	places int
	busy   int
	queue  []request

	deadline time.Duration
	rate     float64 // of arrivals

	// Since the last reading, and ever.
	answered int
	latency  time.Duration // sum of the answers
	load     float64       // integral over time
	peak     int           // in flight
	since    time.Duration
	inFlight int
	good     int
}

type request struct {
	came   time.Duration
	ticket spillway.Ticket
}

// ends are requests that are being served, by when they end: a heap as in
// container/heap, whose interface would allocate each of them.
type ends []end

type end struct {
	at time.Duration
	request
}

func (e *ends) push(x end) {
	h := append(*e, x)
	i := len(h) - 1
	for i > 0 && x.at < h[(i-1)/2].at {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = x
	*e = h
}

func (e *ends) pop() end {
	h := *e
	n := len(h) - 1
	first, last := h[0], h[n]
	i := 0
	for child := 1; child < n; child = 2*i + 1 {
		if right := child + 1; right < n && h[right].at < h[child].at {
			child = right
		}
		if h[child].at >= last.at {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = last
	*e = h[:n]
	return first
}

func newServer(k kind, g gate, seed uint64, rate float64) *server {
	s := &server{kind: k, gate: g, random: rand.New(rand.NewPCG(seed, 7)), places: k.places, deadline: time.Second, rate: rate}
	s.wait()
	return s
}

func (s *server) clock() time.Time { return t0.Add(s.now) }

// wait plans the next arrival.
func (s *server) wait() {
	s.next = s.now + time.Duration(s.random.ExpFloat64()/s.rate*float64(time.Second))
}

func (s *server) arrive() {
	if ticket, ok := s.gate.admit(s.clock()); ok {
		s.inFlight++
		s.peak = max(s.peak, s.inFlight)
		s.queue = append(s.queue, request{s.now, ticket})
	}
	s.wait()
}

// advance lets time pass, and counts what is present meanwhile.
func (s *server) advance(to time.Duration) {
	d := (to - s.now).Seconds()
	s.load += d * float64(s.inFlight) / float64(s.places)
	s.now = to
}

// run lets time pass until a moment.
func (s *server) run(until time.Duration) {
	for {
		switch busy := len(s.ends) > 0; {
		case busy && s.ends[0].at <= min(s.next, until):
			e := s.ends.pop()
			s.advance(e.at)
			s.end(e.request)
		case s.next <= until:
			s.advance(s.next)
			s.arrive()
		default:
			s.advance(until)
			return
		}
		s.fill()
	}
}

func (s *server) fill() {
	for s.busy < s.places && len(s.queue) > 0 {
		if s.now-s.queue[0].came > s.deadline {
			s.leave(s.queue[0])
			s.queue = s.queue[1:]
			continue
		}
		s.busy++
		d := time.Duration((0.5 + s.random.Float64()) * float64(s.service))
		s.ends.push(end{s.now + d, s.queue[0]})
		s.queue = s.queue[1:]
	}
}

// leave lets go of a request whose client has left before it was begun.
func (s *server) leave(r request) {
	s.inFlight--
	r.ticket.Settle(s.clock(), spillway.OutcomeAbandoned)
}

func (s *server) end(r request) {
	s.busy--
	s.inFlight--
	s.answered++
	took := s.now - r.came
	s.latency += took
	if took <= s.deadline {
		s.good++
	}
	r.ticket.Settle(s.clock(), spillway.OutcomeServed)
}

// reading is what can be seen of a server from outside since the last one.
type reading struct {
	rate, peak, load float64
	latency          float64 // in ms; NaN if nothing was answered
}

func (s *server) read() reading {
	d := (s.now - s.since).Seconds()
	r := reading{float64(s.answered) / d, float64(s.peak), s.load / d, math.NaN()}
	if s.answered > 0 {
		r.latency = float64(s.latency.Milliseconds()) / float64(s.answered)
	}
	s.answered, s.latency, s.peak, s.load, s.since = 0, 0, s.inFlight, 0, s.now
	return r
}

// must returns v of a constructor that cannot fail here.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A loop is a server, its limiter, and a Tuner that moves it.
type loop struct {
	*server
	tuner  *tune.Tuner
	rated  bool // the limit is a rate
	cut    bool // no signal comes through
	limits []float64
	moves  []tune.Move
}

// every is the time between two readings.
const every = 250 * ms

func newLoop(k kind, rated bool, rule tune.Rule, seed uint64) *loop {
	c := tune.Config{Limit: k.capacity(), Min: 5, Max: 10_000, Rule: rule, Enforce: true}
	var g gate = rateGate{must(ratelimit.New(ratelimit.Config{}))}
	if !rated {
		c.Limit, c.Min, c.Max, c.Whole = 2*float64(k.places), 1, 1000, true
		g = inflightGate{must(inflight.New(inflight.Config{}))}
	}
	if k == computing {
		c.Signals = []tune.Signal{{Name: "load", Target: 2}}
	} else {
		c.Signals = []tune.Signal{{Name: "latency", Unit: "ms", Target: 1.5 * float64(k.service.Milliseconds())}}
	}
	g.set(c.Limit)
	return &loop{server: newServer(k, g, seed, 1.5*k.capacity()), tuner: must(tune.New(c)), rated: rated}
}

// step lets the time between two readings pass, and takes one.
func (l *loop) step() {
	l.run(l.now + every)
	r := l.read()
	used, value := r.peak, r.load
	if l.rated {
		used = r.rate
	}
	if l.kind == blocking {
		value = r.latency
	}
	if l.cut {
		value = math.NaN()
	}
	if m, ok := l.tuner.Read(l.clock(), used, value); ok {
		l.gate.set(m.To)
		l.moves = append(l.moves, m)
	}
	l.limits = append(l.limits, l.tuner.Limit())
}

// pass steps for a while, and returns the limits of that time.
func (l *loop) pass(d time.Duration) []float64 {
	l.limits = l.limits[:0]
	for end := l.now + d; l.now < end; {
		l.step()
	}
	return l.limits
}
