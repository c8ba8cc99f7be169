package shed

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/elapsed"
)

// A Shedder decides for one server process. It is safe for concurrent use; make
// one with [New]. The package comment says what must be called when.
type Shedder struct {
	config     atomic.Pointer[Config]
	waiting    atomic.Int64
	told       atomic.Bool                           // callers of at least one class are counted
	calm       atomic.Bool                           // Pass may admit
	passed     [spillway.Criticalities]atomic.Uint64 // admitted by Pass
	rejections rejections

	mu         sync.Mutex
	clock      elapsed.Clock
	at         time.Duration // the time of this decision
	faded      time.Duration // when all cascades last faded
	queues     []*queue      // by scope; nil: no request came there yet
	arrived    uint64        // number of waiters since the start
	depth      depth
	levels     levels
	measured   float64       // the utilization for which levels were set
	by         *Config       // the configuration for which levels were set
	hurried    time.Duration // when a request was last admitted whose deadline seemed too close
	began      time.Duration // when a request last began to work
	processors int           // at the last arrival
	busy       standing      // the signal that an overload of the processors stands
	counts     [spillway.Criticalities]ClassStats
	accounts   accounts
	observes   bool // Observe is called, and not Arrive
}

// New returns a Shedder that knows nothing of its load yet, or an error that
// names the field of c that is out of range.
func New(c Config) (*Shedder, error) {
	s := &Shedder{
		depth: depth{factor: 1}, processors: 1, hurried: -lately, queues: []*queue{new(queue)},
		rejections: rejections{policy: c.Policy, advice: c.Advice},
	}
	if err := s.Update(c); err != nil {
		return nil, err
	}
	return s, nil
}

// Update changes the configuration of a Shedder in use, or returns an error that names the field
// that is out of range and changes nothing. The Shedder keeps what it has learnt, and its waiters.
// Limit must stay the same.
func (s *Shedder) Update(c Config) error {
	c, err := c.withDefaults()
	if err == nil {
		s.config.Store(&c)
	}
	return err
}

// Arrive decides on a request. If the request is to [Wait], w is its Waiter, which the caller keeps
// until the request has left the queue. If w is nil, the request cannot wait: it runs instead.
// Arrive allocates only for the first request of a scope, and keeps neither call nor state.
func (s *Shedder) Arrive(now time.Time, call *spillway.Call, state *State, w *Waiter) Decision {
	c := s.config.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	flow := uint64(0)
	if w != nil {
		flow = w.Flow
	}
	var a arrival
	s.examine(&a, now, call, flow, state, c)
	a.queue.callers[a.class].count(flow, a.pace.Usual)
	if why := s.reject(&a, c.Rand); why != admitted {
		return Decision{Verdict: Rejected, Err: s.rejection(why, &a, c)}
	}
	if a.late {
		s.hurried = s.at
	}
	if s.runsAtOnce(&a) || w == nil {
		return Decision{Verdict: Run, Behind: a.delayed(), Ticket: s.run(now, call, &start{a.queue, a.order, flow, s.idle(&a), a.queue.delay})}
	}
	evicted := s.join(&a, w, call)
	return Decision{Verdict: Wait, MaxWait: w.maxWait, Evicted: evicted}
}

// join has a request wait, and returns the waiter that it replaces, if any.
func (s *Shedder) join(a *arrival, w *Waiter, call *spillway.Call) (evicted *Waiter) {
	turn := a.queue.turn(a.order.group(), s.capacity(a), a.pace.Throughput)
	if s.full(a) { // decided before atMost shortens the patience of the request
		evicted = a.queue.victim(a.order)
		s.evict(evicted)
	}
	a.atMost(turn, byQueue)
	s.arrived++
	w.until = s.at + a.patience
	w.arrived, w.key, w.deadline, w.maxWait, w.by, w.bears = s.arrived, call.Key, call.Deadline, a.patience, a.by, a.bears
	w.queue, w.order, w.Err = a.queue, a.order, nil
	a.queue.add(w)
	s.waiting.Add(1)
	return evicted
}

// Reject decides whether a request would be rejected if it arrived now, and if so
// counts the rejection and returns it. Otherwise it returns nil, counts nothing, and
// [Shedder.Arrive] must still be called. flow is as in a [Waiter]. Use it where the class of
// a request is known before the request is read: there a rejection is cheapest. If only a
// share of a class is rejected, Arrive decides which requests.
func (s *Shedder) Reject(now time.Time, call *spillway.Call, flow uint64, state *State) error {
	c := s.config.Load()
	if call.Deadline.IsZero() && s.plenty(state, c) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var a arrival
	s.examine(&a, now, call, flow, state, c)
	if why := s.reject(&a, certain); why != admitted {
		a.queue.callers[a.class].count(flow, a.pace.Usual)
		return s.rejection(why, &a, c)
	}
	return nil
}

// certain returns what Reject uses in place of a random number: so close to 1 that a request
// without a level is rejected only if all requests of its class are.
func certain() float64 { return math.Nextafter(1, 0) }

// advance moves the clock to the time now, and fades the counts for each 100 ms that have passed.
func (s *Shedder) advance(now time.Time) {
	s.at = s.clock.See(now)
	halvings := (s.at - s.faded) / burst
	if halvings == 0 {
		return
	}
	s.faded = s.at
	told := false
	for _, q := range s.queues {
		if q == nil {
			continue
		}
		q.cascade.fade(halvings)
		for i := range q.callers {
			q.callers[i].advance(s.at, q.parked)
			told = told || q.callers[i].active
		}
	}
	s.told.Store(told)
	s.calmDown()
}

// TellsCallersApart reports whether the Flow of a [Waiter] matters now: requests wait, or are
// rejected. Otherwise it may be zero. It takes no lock.
func (s *Shedder) TellsCallersApart() bool { return s.waiting.Load() > 0 || s.told.Load() }

// queue returns the waiting queue of a scope.
func (s *Shedder) queue(scope int) *queue {
	for len(s.queues) <= scope {
		s.queues = append(s.queues, nil)
	}
	if s.queues[scope] == nil {
		s.queues[scope] = &queue{full: standing{seen: s.at}} // nobody had to wait in it before
	}
	return s.queues[scope]
}

// reject returns the reason to reject a request, and counts the rejection, or returns admitted. If
// only a share of a class is rejected, it is the requests with the lowest levels. For those without
// a level the function random decides, which returns a number in [0, 1).
func (s *Shedder) reject(a *arrival, random func() float64) cause {
	var why cause
	switch {
	case a.expired || a.late && s.at-s.hurried < lately:
		why = late
	case s.levels[a.class] > 0 && a.among(a.queue.callers[a.class].level(s.levels[a.class], a.rank%2 == 1), random):
		why = utilized
	case s.stands(a.queue) && a.among(a.queue.cascade.shut(a.rank), random):
		why = higherClass
	case s.full(a) && a.queue.victim(a.order) == nil:
		why = queueFull
	case a.pass < 1 && s.pressed(a) && random() < 1-a.pass:
		why = excessive
	default:
		return admitted
	}
	s.count(a.queue, a.rank, why)
	return why
}

// lately is the time in which one request is admitted whose deadline seems too close. That request
// finds out whether responses have become faster.
const lately = time.Second

// full reports whether the queue has no space for a request.
func (s *Shedder) full(a *arrival) bool { return a.queue.n > 0 && a.queue.n >= s.capacity(a) }

// pressed reports whether a request would have to wait where requests of its rank were rejected
// recently. While an overload stands before a limit, a free slot changes nothing: the caller that
// asks most often would find it first.
func (s *Shedder) pressed(a *arrival) bool {
	return a.queue.cascade.pressed(a.rank) > noise && (!s.runsAtOnce(a) || a.queue.full.lasts > 0)
}

// capacity returns the number of waiters from which a request may not join the queue. For the
// processors see places. For a limit it is the number of requests that are served in the maximum
// wait; for a class that is rejected in part, the wait is shorter: only a burst of a class that is
// served may wait for long.
func (s *Shedder) capacity(a *arrival) int {
	if a.queue.limited && a.pace.Throughput > 0 {
		if a.queue.isShort(a.order.group()) {
			return a.queue.short
		}
		wait := a.patience
		if a.queue.cascade.rejected(a.rank) > noise {
			wait = a.queue.wait(a.patience, a.pace.Latency)
		}
		// This depth keeps the limit reached if arrivals are random.
		floor := min(a.queue.served, a.pace.Throughput*a.patience.Seconds(), capacityAt(a.queue.cascade.above(a.rank)))
		// After a step of the clock the throughput can be any number, also one that no int holds.
		return int(min(max(2, floor, a.pace.Throughput*wait.Seconds()), 1<<29))
	}
	return s.places(a.queue, a.rank)
}

// places returns the capacity of a queue for the processors. It is the depth, but not more than
// 1.25 times the requests that are served in MaxWait, because the others would wait in vain. In a
// burst it is much higher: see crowd.
func (s *Shedder) places(q *queue, rank int) int {
	if q.limited && q.full.lasts < burst || !q.limited && s.bursts() {
		return crowd * s.processors
	}
	n := s.depth.of(q.cascade.above(rank), s.processors)
	if q.served > 0 {
		n = min(n, max(float64(s.processors), 1.25*q.served))
	}
	return max(1, int(n))
}

// runsAtOnce reports whether a request need not wait.
func (s *Shedder) runsAtOnce(a *arrival) bool {
	return a.pace.Free && a.state.Runnable < a.state.processors() && !a.behind
}

// idle reports whether a request finds the server idle.
func (s *Shedder) idle(a *arrival) bool {
	return a.state.Runnable == 0 && a.pace.Free && !a.behind
}

// count counts a rejection. The cascade only counts rejections for lack of capacity.
func (s *Shedder) count(q *queue, rank int, why cause) {
	s.counts[rank/2].RejectedTotal++
	if n := q.cascade.ranks[rank].count(why); n != nil {
		*n++
	}
	if why == late {
		s.counts[rank/2].LateTotal++
	}
	if why == late || why == higherClass {
		return
	}
	if q.limited {
		q.byLimit = s.at
	}
	q.callers[rank/2].rejected(s.at, rank%2)
	s.told.Store(true)
}

// start says how a request begins to work.
type start struct {
	queue   *queue
	order   order
	flow    uint64
	starved bool          // it found the server idle
	delay   time.Duration // for which it will wait behind the limit, or for a processor
}

// run takes a request into flight.
func (s *Shedder) run(now time.Time, call *spillway.Call, from *start) (t spillway.Ticket) {
	s.admit(from)
	if limit := s.config.Load().Limit; limit != nil {
		t = limit.Enter(now, *call)
	}
	s.charge(&t, from)
	return t
}

// admit counts an admission.
func (s *Shedder) admit(from *start) {
	q := from.queue
	class := from.order.class()
	s.counts[class].AdmittedTotal++
	q.callers[class].admit()
	q.cascade.admit(from.order)
	if q == s.queues[0] {
		s.depth.note(from.starved, q.cascade.inQueue())
	}
	s.began = s.at
}

// evict rejects a waiter because the queue is full.
func (s *Shedder) evict(w *Waiter) {
	s.drop(w, queueFull, float64(w.queue.n))
}

// drop takes a waiter out of its queue and rejects it.
func (s *Shedder) drop(w *Waiter, why cause, level float64) {
	s.leave(w, 0)
	w.Ticket, w.Err = spillway.Ticket{}, s.rejections.at(why, w.order.class(), level, 0)
	s.count(w.queue, w.order.rank(), why)
}

// leave takes a waiter out of its queue; gone is 1 if its client has left and else 0.
func (s *Shedder) leave(w *Waiter, gone float64) {
	w.queue.left = ewma(gone, w.queue.left, memory)
	w.queue.remove(w)
	s.waiting.Add(-1)
}
