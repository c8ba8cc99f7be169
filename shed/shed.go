package shed

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
)

// A Shedder decides for one server process. It is safe for concurrent use; make
// one with [New]. The package comment says who must call what.
type Shedder struct {
	config  atomic.Pointer[Config]
	waiting atomic.Int64 // room.n, for those without the lock

	mu         sync.Mutex
	room       room
	depth      depth
	cascade    cascade
	limit      limit
	levels     levels
	quickest   extreme       // seconds that the quickest request took
	hurry      time.Duration // when one that must be quicker was last let in, on the limit's clock
	began      time.Duration // when a request last did, on the limit's clock
	processors int           // as last seen
	counts     [spillway.Criticalities]ClassStats
	evicted    uint64
	expired    uint64
}

// New returns a Shedder that knows nothing of its load yet, or an error that
// names the field of c that is out of range.
func New(c Config) (*Shedder, error) {
	s := &Shedder{
		depth:      depth{factor: 1},
		limit:      newLimit(),
		quickest:   extreme{least: true, memory: latencyMemory},
		processors: 1,
	}
	if err := s.Update(c); err != nil {
		return nil, err
	}
	return s, nil
}

// Update changes the configuration of a Shedder in use, or returns an error that
// names the field that is out of range and changes nothing. What was learnt, and
// who waits, is kept.
func (s *Shedder) Update(c Config) error {
	c, err := c.withDefaults()
	if err == nil {
		s.config.Store(&c)
	}
	return err
}

// Arrive decides on a request. If it is to [Wait], it does so in w, which the
// caller keeps until the request has left the room. Where w is nil the request
// cannot wait: one that would have had to is to Run instead. Arrive allocates
// nothing.
func (s *Shedder) Arrive(now time.Time, call spillway.Call, state State, w *Waiter) Decision {
	c, class := s.config.Load(), call.Criticality.Index()
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := s.refuse(now, call, state, c.Rand); why != admitted {
		return Decision{Verdict: Refused, Err: why.refusal(class)}
	}
	if s.hurried(now, call) {
		s.hurry = s.limit.at
	}
	if s.room.n == 0 && state.Runnable < state.processors() && s.limit.free(now, state) || w == nil {
		return Decision{Verdict: Run, Ticket: s.run(now, class, s.idle(state))}
	}
	d := Decision{Verdict: Wait, MaxWait: s.patience(now, call, min(c.MaxWait, s.turn(class)))}
	if s.full(class) {
		d.Evicted = s.last(s.room.lowest())
		s.evicted++
		s.drop(d.Evicted, crowded)
	}
	s.room.add(w, class)
	s.waiting.Store(int64(s.room.n))
	return d
}

// Refuse decides whether a request would be refused if it arrived now, and if so
// counts the refusal and returns it. Otherwise it returns nil, nothing is
// counted, and the request must still [Shedder.Arrive]. It is for where a
// request is known before it has been read, and refusing is cheapest. Where only a
// share of a class is refused, Arrive decides which.
// [State.Runnable] only counts if it is 0: a class may then have what one above leaves.
func (s *Shedder) Refuse(now time.Time, call spillway.Call, state State) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := s.refuse(now, call, state, certain); why != admitted {
		return why.refusal(call.Criticality.Index())
	}
	return nil
}

// certain is no chance: what is refused by it is refused whatever is drawn.
func certain() float64 { return math.Nextafter(1, 0) }

// refuse reports why a request must be refused, and counts it, or returns
// admitted. Where only a share of a class is, random decides, in [0, 1).
func (s *Shedder) refuse(now time.Time, call spillway.Call, state State, random func() float64) reason {
	class := call.Criticality.Index()
	s.processors = state.processors()
	s.limit.advance(now)
	s.cascade.advance(now)
	s.levels.set(state.Utilization, &s.config.Load().Thresholds)
	var why reason
	switch {
	case s.late(now, call):
		why = late
	case s.levels[class] > 0 && random() < s.levels[class]:
		why = utilized
	case s.cascade.shut(class, random) && !s.spare(class, state):
		why = outranked
	case s.full(class) && s.room.lowest() >= class:
		why = crowded
	default:
		return admitted
	}
	s.count(class, why)
	return why
}

// spare reports whether a processor has nothing to do, not even a request that
// waits, and no class above has a better right to it.
func (s *Shedder) spare(class int, state State) bool {
	return s.room.n == 0 && state.Runnable == 0 && !s.limit.bound && s.cascade.next() == class
}

// late reports whether the deadline has passed, or is nearer than any request was quick
// and one such was let in lately.
func (s *Shedder) late(now time.Time, call spillway.Call) bool {
	return s.hurried(now, call) && (s.limit.at-s.hurry < lately || !now.Before(call.Deadline))
}

const lately = time.Second

// hurried reports whether no request was as quick as this one would have to be.
func (s *Shedder) hurried(now time.Time, call spillway.Call) bool {
	return !call.Deadline.IsZero() && call.Deadline.Sub(now).Seconds() <= s.quickest.value()
}

// full reports whether the room has no place that a class may take.
func (s *Shedder) full(class int) bool {
	return s.room.n > 0 && s.room.n >= s.places(class)
}

// places is how deep the room is for a class.
func (s *Shedder) places(class int) int {
	return max(1, int(s.depth.of(s.cascade.classes[class].above)*float64(s.processors)))
}

// idle reports whether a request that runs at once has found nothing to do.
func (s *Shedder) idle(state State) bool {
	return state.Runnable == 0 && s.limit.slack()
}

// count counts a refusal. One that capacity had no part in teaches nothing.
func (s *Shedder) count(class int, why reason) {
	s.counts[class].RefusedTotal++
	switch why {
	case crowded, waited:
		s.cascade.note(class, 1)
	case outranked:
		s.cascade.noteOutranked(class, 1)
	default:
	}
}

// run takes a request into flight.
func (s *Shedder) run(now time.Time, class int, starved bool) spillway.Ticket {
	s.counts[class].AdmittedTotal++
	s.cascade.note(class, 0)
	s.depth.note(starved, s.cascade.pressed)
	if starved {
		s.cascade.spare()
	}
	s.began = s.limit.enter(now)
	return spillway.Ticket{By: s, Epoch: uint64(s.began), Criticality: spillway.Criticality(class) + spillway.Sheddable}
}

// drop takes a waiter out of the room and refuses it.
func (s *Shedder) drop(w *Waiter, why reason) {
	s.leave(w)
	w.Ticket, w.Err = spillway.Ticket{}, why.refusal(w.class)
	s.count(w.class, why)
}

func (s *Shedder) leave(w *Waiter) {
	s.room.remove(w)
	s.waiting.Store(int64(s.room.n))
}

// turn is how long a waiter may be of use to a class of which the newest runs
// first: in the time in which all places are served once newer ones have come.
func (s *Shedder) turn(class int) time.Duration {
	rate := s.limit.rate.value()
	if !s.newestFirst(class) || rate == 0 {
		return math.MaxInt64
	}
	return max(brief, time.Duration(float64(s.places(class))/rate*float64(time.Second)))
}

const brief = 5 * time.Millisecond

// patience is how long a request may wait: three quarters of what its deadline
// leaves beyond twice the time that requests take lately, or a quarter of all.
func (s *Shedder) patience(now time.Time, call spillway.Call, most time.Duration) time.Duration {
	if call.Deadline.IsZero() {
		return most
	}
	left := call.Deadline.Sub(now)
	spare := left - 2*time.Duration(s.limit.recent*float64(time.Second))
	return min(most, max(spare/4*3, left/4))
}

// Next returns the next waiter to leave the room: one to run now, with its
// Ticket, or one that will never run, with its Err. Ask again until it returns
// nil. If it is nil and busy is set, a waiter would run if a processor
// were free: ask again when one is. Otherwise ask after the next Settle. Next
// allocates nothing.
func (s *Shedder) Next(now time.Time, state State) (w *Waiter, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w = s.excess(); w != nil {
		s.evicted++
		s.drop(w, crowded)
		return w, false
	}
	switch {
	case s.room.n == 0:
		return nil, false
	case state.Runnable >= state.processors() && !s.stalled(now, state):
		return nil, true
	case !s.limit.free(now, state):
		return nil, false
	}
	w = s.first()
	class := w.class
	s.leave(w)
	w.Ticket, w.Err = s.run(now, class, false), nil
	return w, false
}

// excess returns a waiter that will never run, if there is one: the oldest of the
// lowest class, where the newest runs first and the room has become too deep.
func (s *Shedder) excess() *Waiter {
	class := s.room.lowest()
	if class < 0 || !s.newestFirst(class) || s.room.n <= s.places(class) {
		return nil
	}
	return s.last(class)
}

// newestFirst reports whether so much of a class is refused that its newest waiter
// runs first: the older ones have used up much of their time.
func (s *Shedder) newestFirst(class int) bool { return s.cascade.classes[class].refused > 0.2 }

// first returns the waiter that runs first.
func (s *Shedder) first() *Waiter {
	if s.calm() {
		return s.room.oldest()
	}
	class := s.room.highest()
	if s.newestFirst(class) {
		return s.room.queues[class].newest
	}
	return s.room.queues[class].oldest
}

// calm reports whether nothing is refused, nor will be for having waited too long.
// The oldest of all runs first then: nobody waits for longer than without a room.
func (s *Shedder) calm() bool {
	served := s.limit.rate.value() * s.config.Load().MaxWait.Seconds() // in the longest wait
	return s.cascade.pressed <= noise && (served == 0 || float64(s.room.n) <= 0.8*served)
}

// last returns the one that runs last, if it does.
func (s *Shedder) last(class int) *Waiter {
	if s.newestFirst(class) {
		return s.room.queues[class].oldest
	}
	return s.room.queues[class].newest
}

// stalled reports whether goroutines that are not requests keep the executor
// busy: no request has begun for a time slice of the scheduler, and fewer are in
// flight than there are processors. They get their share of the executor then.
func (s *Shedder) stalled(now time.Time, state State) bool {
	s.limit.advance(now)
	return s.limit.at-s.began >= slice && s.limit.flight.moving() < state.processors()
}

const slice = 10 * time.Millisecond

// Waiting returns how many requests wait. It takes no lock.
func (s *Shedder) Waiting() int { return int(s.waiting.Load()) }

// Expire refuses a request that has waited for as long as it may, and reports
// true. It reports false, and changes nothing, if the request has left the room:
// then it was handed out by [Shedder.Next] or as evicted.
func (s *Shedder) Expire(w *Waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.waiting {
		return false
	}
	s.expired++
	s.drop(w, waited)
	return true
}

// Withdraw takes out a waiter whose client has left, like [Shedder.Expire], but
// nothing was refused.
func (s *Shedder) Withdraw(w *Waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.waiting {
		return false
	}
	s.leave(w)
	return true
}

// Settle implements [spillway.Settler]; use [spillway.Ticket.Settle]. What
// matters is when a request ended; only one that was served or failed says how
// long requests take.
func (s *Shedder) Settle(now time.Time, t spillway.Ticket, o spillway.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Duration(t.Epoch)
	if t.Suspended > 0 {
		began = s.limit.resume(now, began)
	}
	s.limit.leave(now, began, o == spillway.Served || o == spillway.Failed)
	if took := s.limit.at - began; o == spillway.Served && took > 0 {
		s.quickest.put(s.limit.at, took.Seconds())
	}
}

// Suspend implements [spillway.Suspender]; use [spillway.Ticket.Suspend].
func (s *Shedder) Suspend(now time.Time, t spillway.Ticket) spillway.Ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Suspended++; t.Suspended == 1 {
		t.Epoch = uint64(s.limit.suspend(now, time.Duration(t.Epoch)))
	}
	return t
}

// Resume implements [spillway.Suspender]; use [spillway.Ticket.Resume].
func (s *Shedder) Resume(now time.Time, t spillway.Ticket) spillway.Ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Suspended--; t.Suspended == 0 {
		t.Epoch = uint64(s.limit.resume(now, time.Duration(t.Epoch)))
	}
	return t
}

var _ spillway.Suspender = (*Shedder)(nil)
