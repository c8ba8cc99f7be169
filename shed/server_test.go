package shed_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/shed"
)

// server is a Go process in virtual time: processors that run goroutines from
// one queue until they block, handlers that compute, sleep and use a pool, and a
// Shedder in front, driven as package ingress does it: each arrival is examined
// by a separate goroutine, and waiters are let in when the run queue is empty.
type server struct {
	shedder    *shed.Shedder
	limit      *concurrency.Limiter
	processors int
	handler    []phase
	vary       func() []phase                               // gives each request a handler of its own; nil: all have the same
	key        func(spillway.Criticality) (string, []phase) // what each class asks for; nil: all the same
	pool       int                                          // free slots
	poolQueue  fifo[func()]                                 // waiting for one
	deadline   time.Duration                                // of each request
	known      bool                                         // to the Shedder
	leave      bool                                         // clients leave then, and the work goes on
	forwards   func() float64                               // CPU, of a server that only passes requests on; nil: it does the work
	ended      func(r *request, rejected bool)
	preempts   bool // the scheduler looks for waiters every 10 ms, also while no processor is idle
	atOnce     bool // rejects what the limit does not admit, without a queue

	now     time.Time // the start and at
	start   time.Time
	at      time.Duration // since the start
	events  events
	seq     int
	used    time.Duration // processor time since the last sample
	sampled time.Time
	cpu     float64
	running int
	queue   fifo[task]
	rand    *rand.Rand
	levels  *rand.Rand // of requests, as package ingress draws them

	offered, good, late, rejected [spillway.Criticalities]int
	latencies                     []time.Duration
	from                          time.Time // when counting begins
}

// phase is a part of a handler: it computes, or sleeps, or sleeps holding a slot.
type phase struct {
	cpu, sleep, pool time.Duration
}

type task struct {
	cpu  time.Duration
	then func()
}

func (s *server) after(d time.Duration, do func()) {
	s.seq++
	s.events.push(event{at: s.at + d, seq: s.seq, do: do})
}

// spawn makes a goroutine ready that computes and then does something.
func (s *server) spawn(cpu time.Duration, then func()) {
	s.queue.push(task{cpu, then})
	s.schedule()
}

func (s *server) schedule() {
	for s.running < s.processors {
		if s.queue.len() == 0 {
			if !s.dispatch() {
				return
			}
			continue
		}
		t := s.queue.pop()
		s.running++
		s.used += t.cpu
		s.seq++
		s.events.push(event{at: s.at + t.cpu, seq: s.seq, do: t.then, frees: true})
	}
}

func (s *server) state() shed.State {
	if s.forwards != nil {
		return shed.State{Processors: s.processors, CPU: s.forwards()}
	}
	if d := s.now.Sub(s.sampled); d >= 100*ms {
		s.cpu = float64(s.used) / float64(d) / float64(s.processors)
		s.used, s.sampled = 0, s.now
	}
	return shed.State{Runnable: s.queue.len(), Processors: s.processors, CPU: s.cpu}
}

// dispatch lets a waiter in. There is nothing else to do.
func (s *server) dispatch() bool {
	w, _ := s.shedder.Next(s.now, s.state())
	if w == nil {
		return false
	}
	r := w.Owner.(*request)
	if w.Err != nil {
		s.count(&s.rejected, r)
		return true
	}
	r.ticket = w.Ticket
	s.queue.push(task{time.Microsecond, func() { s.serve(r, 0) }})
	return true
}

type request struct {
	arrived time.Time
	handler []phase
	class   spillway.Criticality
	key     string
	waiter  shed.Waiter
	ticket  spillway.Ticket
	ended   bool

	level    spillway.Level
	progress spillway.Progress
	task     *userTask
}

// examining is what it costs to look at a request and reject it.
const examining = 10 * time.Microsecond

func (s *server) arrive(class spillway.Criticality) { s.arriveAs(class, 0) }

func (s *server) arriveAs(class spillway.Criticality, flow uint64) {
	s.arriveWith(class, flow, "", s.handler)
}

func (s *server) arriveWith(class spillway.Criticality, flow uint64, key string, handler []phase) {
	r := &request{key: key, arrived: s.now, class: class, handler: handler, level: spillway.Level(1 + s.levels.IntN(spillway.Levels))}
	if s.vary != nil {
		r.handler = s.vary()
	}
	if s.key != nil {
		r.key, r.handler = s.key(class)
	}
	r.waiter.Owner, r.waiter.Flow = r, flow
	s.count(&s.offered, r)
	s.spawn(examining, func() { s.examine(r) })
}

func (s *server) examine(r *request) {
	if s.atOnce {
		s.examineAtOnce(r)
		return
	}
	state := s.state()
	call := spillway.Call{Key: r.key, Criticality: r.class, Level: r.level, Progress: r.progress}
	if s.known {
		call.Deadline = r.arrived.Add(s.deadline)
	}
	d := s.shedder.Arrive(s.now, &call, &state, &r.waiter)
	if d.Evicted != nil {
		s.count(&s.rejected, d.Evicted.Owner.(*request))
	}
	switch d.Verdict {
	case shed.Run:
		r.ticket = d.Ticket
		s.serve(r, 0)
	case shed.Wait:
		s.outstay(d.MaxWait, r)
	default:
		s.count(&s.rejected, r)
	}
}

// outstay rejects a waiter after a while.
func (s *server) outstay(after time.Duration, r *request) {
	s.after(after, func() {
		if s.shedder.Expire(&r.waiter) {
			s.count(&s.rejected, r)
		}
	})
}

// examineAtOnce asks the limit alone.
func (s *server) examineAtOnce(r *request) {
	ticket, err := s.limit.Admit(s.now, spillway.Call{Key: r.key, Criticality: r.class})
	if err != nil {
		s.count(&s.rejected, r)
		return
	}
	r.ticket = ticket
	s.serve(r, 0)
}

// serve does the phases of the handler from the i-th on.
func (s *server) serve(r *request, i int) {
	if i == 0 && s.leave {
		s.after(r.arrived.Add(s.deadline).Sub(s.now), func() {
			if !r.ended {
				r.ended = true
				r.ticket.Settle(s.now, spillway.OutcomeTimedOut)
				s.count(&s.late, r)
			}
		})
	}
	if i == len(r.handler) {
		s.end(r)
		return
	}
	next := func() { s.serve(r, i+1) }
	switch p := r.handler[i]; {
	case p.cpu > 0:
		s.spawn(p.cpu, next)
	case p.sleep > 0:
		s.after(p.sleep, func() { s.spawn(time.Microsecond, next) })
	case s.pool > 0:
		s.pool--
		s.hold(p.pool, next)
	default:
		s.poolQueue.push(func() { s.hold(p.pool, next) })
	}
}

// hold keeps a slot of the pool for a while, and hands it on.
func (s *server) hold(d time.Duration, next func()) {
	s.after(d, func() {
		if s.poolQueue.len() > 0 {
			s.poolQueue.pop()()
		} else {
			s.pool++
		}
		s.spawn(time.Microsecond, next)
	})
}

func (s *server) end(r *request) {
	if r.ended {
		return
	}
	r.ended = true
	r.ticket.Settle(s.now, spillway.OutcomeServed)
	took := s.now.Sub(r.arrived)
	if took > s.deadline {
		s.count(&s.late, r)
		return
	}
	s.count(&s.good, r)
	if !r.arrived.Before(s.from) {
		s.latencies = append(s.latencies, took)
	}
}

func (s *server) count(c *[spillway.Criticalities]int, r *request) {
	if !r.arrived.Before(s.from) {
		c[r.class.Index()]++
	}
	if s.ended != nil && c != &s.offered {
		s.ended(r, c == &s.rejected)
	}
}

// offer lets requests arrive at random, rate of them per second, for a while.
func (s *server) offer(rate float64, length time.Duration, classes ...spillway.Criticality) {
	end := s.now.Add(length)
	var next func()
	next = func() {
		if s.now.After(end) {
			return
		}
		s.arrive(classes[s.rand.IntN(len(classes))])
		s.after(time.Duration(s.rand.ExpFloat64()/rate*float64(time.Second)), next)
	}
	next()
	s.run(end)
}

// crowd has n clients ask again once they are answered, or soon after they are rejected.
func (s *server) crowd(n int) {
	s.ended = func(r *request, rejected bool) {
		pause := time.Duration(0)
		if rejected {
			pause = 20 * ms
		}
		s.after(pause, func() { s.arrive(r.class) })
	}
	for i := range n {
		s.after(time.Duration(i)*ms/10, func() { s.arrive(allClasses[i%len(allClasses)]) })
	}
}

func (s *server) run(until time.Time) {
	end := until.Sub(s.start)
	for len(s.events) > 0 && s.events[0].at <= end {
		e := s.events.pop()
		s.at, s.now = e.at, s.start.Add(e.at)
		if e.frees {
			s.running--
		}
		e.do()
		s.schedule()
	}
	s.at, s.now = end, until
}

// fresh resets the counts.
func (s *server) fresh() {
	s.from, s.latencies = s.now, nil
	s.offered, s.good, s.late, s.rejected = [4]int{}, [4]int{}, [4]int{}, [4]int{}
}

func (s *server) p99() time.Duration {
	if len(s.latencies) == 0 {
		return 0
	}
	slices.Sort(s.latencies)
	return s.latencies[int(0.99*float64(len(s.latencies)-1))]
}

func total(c [spillway.Criticalities]int) (n int) {
	for _, v := range c {
		n += v
	}
	return n
}

const ms = time.Millisecond

// The three kinds of servers: short of processor time, short of it but also
// waiting, and short of slots in a pool.
var (
	computing = kind{handler: []phase{{cpu: 1500 * time.Microsecond}}, capacity: 1 / 0.00151}
	mixed     = kind{handler: []phase{{cpu: 300 * time.Microsecond}, {sleep: 5 * ms}, {cpu: 1200 * time.Microsecond}}, capacity: 1 / 0.00151}
	blocking  = kind{handler: []phase{{pool: 20 * ms}}, pool: 8, capacity: 8 / 0.020}
)

type kind struct {
	handler  []phase
	pool     int
	capacity float64 // of one processor
	limit    concurrency.Config
}

func (k kind) server(t *testing.T, processors int, seed uint64) *server {
	t.Helper()
	race.SkipOneGoroutine(t)
	r := rand.New(rand.NewPCG(seed, 21))
	l := limiter(t, k.limit)
	c := shed.Config{Limit: l, Rand: rand.New(rand.NewPCG(seed, 22)).Float64}
	s := &server{
		shedder: must(t, c), limit: l, processors: processors, handler: k.handler, pool: k.pool,
		deadline: 100 * ms, now: time.Unix(1e9, 0), start: time.Unix(1e9, 0), rand: r, levels: rand.New(rand.NewPCG(seed, 23)),
	}
	s.heartbeat()
	return s
}

// heartbeat reports to the limit every 10 ms that the process runs. It waits for a processor
// as requests do, and is 30 ms late while another process uses the processors.
func (s *server) heartbeat() {
	interval := 10 * ms
	if s.forwards != nil && s.forwards() > 0.5 {
		interval = 40 * ms
	}
	s.after(interval, func() {
		s.spawn(time.Microsecond, func() {
			s.limit.Beat(s.now, s.state().CPU > 0.75 && s.forwards == nil)
			if s.preempts {
				s.dispatch()
			}
			s.heartbeat()
		})
	})
}

func limiter(tb testing.TB, c concurrency.Config) *concurrency.Limiter {
	tb.Helper()
	l, err := concurrency.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}
