package shed

import (
	"math"
	"time"

	"github.com/seed90641741/spillway"
)

// Next returns the next waiter to leave its queue: one to run now, with its Ticket, or one that
// will never run, with its Err. Call Next again until it returns nil. If busy is true then, a
// waiter would run if a processor were free: call Next again when one is free. Otherwise call it
// after the next Settle. Next allocates nothing.
func (s *Shedder) Next(now time.Time, state State) (w *Waiter, busy bool) {
	c := s.config.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	if s.waiting.Load() == 0 {
		return nil, false
	}
	free := state.Runnable < state.processors()
	if w = s.excess(); w != nil {
		s.evict(w)
		return w, false
	}
	if w = s.best(now, c); w == nil {
		return nil, false
	}
	from := start{queue: w.queue, order: w.order, flow: w.Flow, delay: w.queue.delay}
	if !free {
		if !s.stalled(c, state, w) {
			return nil, true
		}
		from.delay = max(from.delay, slice) // it waits for a processor
	}
	s.leave(w, 0)
	if free && w.queue == s.queues[0] && !w.queue.limited {
		s.seeBusy(w.queue.n == 0)
	}
	call := spillway.Call{Key: w.key, Criticality: spillway.Criticality(w.order.class()) + spillway.Sheddable, Level: w.order.level(), Deadline: w.deadline}
	w.Ticket, w.Err = s.run(now, &call, &from), nil
	return w, false
}

// best returns the most critical waiter that its limit admits. Of several of the same class it
// returns the oldest.
func (s *Shedder) best(now time.Time, c *Config) (best *Waiter) {
	for i := 0; i < len(s.queues); i++ { //nolint:intrange // front may append
		if s.queues[i] == nil {
			continue
		}
		w := s.front(now, s.queues[i], c)
		if w == nil {
			continue
		}
		if best == nil || w.order.class() > best.order.class() || w.order.class() == best.order.class() && w.arrived < best.arrived {
			best = w
		}
	}
	return best
}

// front returns the first waiter of a queue if its limit admits it, else nil. If the waiter now
// depends on the limit of another queue, front moves it there: it must not block the waiters behind
// it.
func (s *Shedder) front(now time.Time, q *queue, c *Config) *Waiter {
	for q.n > 0 {
		w := q.first()
		if c.Limit == nil {
			return w
		}
		pace := s.ask(now, w.key, c)
		if pace.Free {
			if q.keeps(w.order.rank(), s.at, c.MaxWait, pace.Left) || q.yields(w.order.group(), &pace) || delays(&pace, w.bears) {
				return nil
			}
			return w
		}
		to := s.queue(pace.Scope)
		if to == q {
			return nil
		}
		q.remove(w)
		w.queue = to
		to.add(w)
	}
	return nil
}

// excess returns a waiter that will never run, nil if there is no such waiter: the one with the
// lowest order, if more wait for the processors than the queue has capacity for. They came in a
// burst, when the capacity was greater.
func (s *Shedder) excess() *Waiter {
	q := s.queues[0]
	w := q.lowest()
	if w == nil {
		return nil
	}
	rank := w.order.rank()
	if q.n <= s.places(q, rank) || !q.overloaded(rank) && (q.limited || float64(q.n) <= deepest*math.Sqrt(float64(s.processors))) {
		return nil
	}
	return w
}

// stalled reports whether goroutines that serve no request keep the processors busy: no request
// began for a time slice, and fewer requests than processors are at work. Then the waiter runs. If
// its caller is within the fair share, only requests of such callers count.
func (s *Shedder) stalled(c *Config, state State, w *Waiter) bool {
	if s.at-s.began < slice || c.Limit == nil {
		return false
	}
	working, _ := c.Limit.Working()
	if w.order.rank()%2 == 1 {
		working = w.queue.within()
	}
	return working < state.processors()
}

// slice is the time slice of the Go scheduler.
const slice = 10 * time.Millisecond

// Waiting returns how many requests wait. It takes no lock.
func (s *Shedder) Waiting() int { return int(s.waiting.Load()) }

// Expire rejects a request whose maximum wait has passed, and reports
// true. It reports false, and changes nothing, if the request has left its queue:
// then it was handed out by [Shedder.Next] or as evicted.
func (s *Shedder) Expire(w *Waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.waiting {
		return false
	}
	s.drop(w, w.by, w.maxWait.Seconds()*1000)
	return true
}

// Withdraw takes out a waiter whose client has left, like [Shedder.Expire], but
// nothing was rejected.
func (s *Shedder) Withdraw(w *Waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.waiting {
		return false
	}
	s.leave(w, 1)
	return true
}
