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
		depth:      depth{learnt: usual},
		limit:      newLimit(),
		quickest:   extreme{of: math.Min, memory: latencyMemory},
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
	c := s.config.Load()
	class, u := call.Criticality.Index(), c.Rand()
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := s.refuse(now, call, state, u); why != admitted {
		return Decision{Verdict: Refused, Err: why.refusal(class)}
	}
	if s.room.n == 0 && state.Runnable < state.processors() && s.limit.free(now, state) || w == nil {
		return Decision{Verdict: Run, Ticket: s.run(now, class, s.idle(state))}
	}
	d := Decision{Verdict: Wait, MaxWait: s.patience(now, call, c.MaxWait)}
	if s.full(class) {
		d.Evicted = s.room.below(class)
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
// request is known before it has been read, and refusing is cheapest.
// [State.Runnable] is not used.
func (s *Shedder) Refuse(now time.Time, call spillway.Call, state State) error {
	u := s.config.Load().Rand()
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := s.refuse(now, call, state, u); why != admitted {
		return why.refusal(call.Criticality.Index())
	}
	return nil
}

// refuse reports why a request must be refused, and counts it, or returns
// admitted. u is uniform in [0, 1).
func (s *Shedder) refuse(now time.Time, call spillway.Call, state State, u float64) reason {
	class := call.Criticality.Index()
	s.processors = state.processors()
	s.limit.advance(now)
	s.cascade.advance(now)
	s.levels.set(state.Utilization, s.config.Load().Thresholds)
	var why reason
	switch {
	case s.late(now, call):
		why = late
	case u < s.levels[class]:
		why = utilized
	case s.cascade.shut(class, u):
		why = outranked
	case s.full(class) && s.room.below(class) == nil:
		why = crowded
	default:
		return admitted
	}
	s.count(class, why)
	return why
}

// late reports whether the deadline is nearer than any request was quick.
func (s *Shedder) late(now time.Time, call spillway.Call) bool {
	return !call.Deadline.IsZero() && call.Deadline.Sub(now).Seconds() <= s.quickest.value()
}

// full reports whether the room has no place that a class may take.
func (s *Shedder) full(class int) bool {
	depth := s.depth.of(s.cascade.classes[class].refused)
	return s.room.n >= max(1, int(depth*float64(s.processors)))
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
	s.depth.note(starved, s.cascade.all)
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

// Next returns the waiter to run now, with its Ticket; ask again until it
// returns nil. If it is nil and busy is set, a waiter would run if a processor
// were free: ask again when one is. Otherwise ask after the next Settle. Next
// allocates nothing.
func (s *Shedder) Next(now time.Time, state State) (w *Waiter, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.room.n == 0:
		return nil, false
	case state.Runnable >= state.processors() && !s.stalled(now, state):
		return nil, true
	case !s.limit.free(now, state):
		return nil, false
	}
	class := s.room.highest()
	if w = s.room.queues[class].oldest; s.cascade.classes[class].refused > newestFirst {
		w = s.room.queues[class].newest
	}
	s.leave(w)
	w.Ticket, w.Err = s.run(now, class, false), nil
	return w, false
}

// stalled reports whether goroutines that are not requests keep the executor
// busy: no request has begun for a time slice of the scheduler, and fewer are in
// flight than there are processors. They get their share of the executor then.
func (s *Shedder) stalled(now time.Time, state State) bool {
	s.limit.advance(now)
	return s.limit.at-s.began >= slice && s.limit.flight.moving() < state.processors()
}

const slice = 10 * time.Millisecond

// newestFirst is the refused share of a class above which its newest waiter runs
// first.
const newestFirst = 0.3

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
	s.limit.leave(now, began)
	if took := s.limit.at - began; o == spillway.Served && took > 0 {
		s.quickest.put(s.limit.at, took.Seconds())
	}
}

var _ spillway.Settler = (*Shedder)(nil)
