package shed

import (
	"time"

	"github.com/seed90641741/spillway"
)

// Next returns the next waiter to leave its queue: one to run now, with its
// Ticket, or one that will never run, with its Err. Ask again until it returns
// nil. If it is nil and busy is set, a waiter would run if a processor
// were free: ask again when one is. Otherwise ask after the next Settle. Next
// allocates nothing.
func (s *Shedder) Next(now time.Time, state State) (w *Waiter, busy bool) {
	c := s.config.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	if s.waiting.Load() == 0 {
		return nil, false
	}
	free := state.Runnable < state.processors()
	if free {
		s.stall.end(s.at)
	}
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
		s.busy.see(s.at, w.queue.n == 0, slice)
	}
	call := spillway.Call{Key: w.key, Criticality: spillway.Criticality(w.order.class()) + spillway.Sheddable, Level: w.order.level(), Deadline: w.deadline}
	w.Ticket, w.Err = s.run(now, &call, &from), nil
	return w, false
}

// best returns the most critical waiter that its limit admits, the oldest of several.
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

// front returns the first waiter of a queue if its limit admits it. If the limit of another
// queue does not admit the waiter by now, front moves the waiter to that queue: it must not
// block the waiters behind it.
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

// excess returns a waiter for a processor that will never run, if any: the last one of the
// lowest class, if the queue is above its capacity. If the oldest run first, that is what is
// left of a burst.
func (s *Shedder) excess() *Waiter {
	q := s.queues[0]
	w := q.lowest()
	if w == nil {
		return nil
	}
	rank := w.order.rank()
	if q.n <= s.places(q, rank) || !q.overloaded(rank) && (q.limited || q.n <= int(deepest)*s.processors) {
		return nil
	}
	return w
}

// stalled reports whether other goroutines keep the processors busy: no request began for a
// time slice, and fewer requests than processors are at work. Then the waiter runs. For a
// caller within its fair share, only requests of such callers count.
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

// More returns how much longer a waiter may wait whose maximum wait has passed, zero for no
// longer: the time in which no processor was free, unless an overload stands. Ask before
// [Shedder.Expire], and again after that time.
func (s *Shedder) More(now time.Time, w *Waiter) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	if !w.waiting || w.queue != s.queues[0] || w.queue.limited || !s.bursts() {
		return 0
	}
	stalled := s.stall.until(s.at)
	more := min(stalled-w.stalled, w.until-s.at)
	w.stalled = stalled
	if more < time.Millisecond {
		return 0
	}
	w.maxWait, w.by = w.maxWait+more, byBurst
	return more
}

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
