package shed

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/pace"
)

// Observe takes in a request that runs at once, whatever s decides. It returns the Ticket of the
// request, which must be settled exactly once, and the rejection that [Shedder.Arrive] would have
// returned, or nil.
//
// A request that would wait joins a queue in which no goroutine waits, with w as its Waiter, and
// waits is true. Then w belongs to s until the Ticket is settled. It has an Err after that if the
// request would have been rejected later: replaced by another one, or after its maximum wait. In
// all other cases Observe keeps no pointer. If w is nil, the request was rejected elsewhere: it
// only runs.
//
// The requests in flight are those of a server that rejects nothing. The queue is imagined in front
// of this server: with each answer one waiter leaves it. With a request that its client gave up
// none leaves, because the capacity that it used served no one.
//
// Of a Shedder that observes, call only [Shedder.Pass], Observe, [Shedder.Stats] and
// [Shedder.TellsCallersApart]. Another Shedder, with the same Limit, may decide meanwhile.
func (s *Shedder) Observe(now time.Time, call *spillway.Call, state *State, w *Waiter) (t spillway.Ticket, waits bool, err error) {
	c := s.config.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observes = true
	of := account{queue: s.queues[0]}
	if w != nil {
		of, err = s.observe(now, call, state, w, c)
	} else {
		s.advance(now)
	}
	if c.Limit != nil {
		t = c.Limit.Enter(now, *call)
	}
	of.queue.present++
	t.By, t.Account = s, s.accounts.open(of)
	return t, of.place != nil, err
}

// hold changes p so that a limit which is only observed counts as reached until its overload is
// over. The requests in flight do not obey such a limit, so the limit cannot find out when the
// overload is over. It counts as over when the requests in flight that came to its queue are no
// more than all requests in flight when the limit was reached.
func (s *Shedder) hold(p *pace.Pace, key string, c *Config) {
	if !p.Free {
		if q := s.queue(p.Scope); !q.holds {
			q.holds, q.key = true, key
			q.reached, _ = c.Limit.Working()
			q.reached += q.present
		}
		return
	}
	for scope, q := range s.queues {
		if q == nil || !q.holds || scope > 0 && q.key != key {
			continue
		}
		if q.holds = q.present > q.reached; q.holds {
			p.Free, p.Scope = false, scope
			return
		}
	}
}

// observe decides on a request, and returns its account.
func (s *Shedder) observe(now time.Time, call *spillway.Call, state *State, w *Waiter, c *Config) (of account, err error) {
	s.clear(now, state, c)
	var a arrival
	s.examine(&a, now, call, w.Flow, state, c)
	a.queue.callers[a.class].count(w.Flow, a.pace.Usual)
	if why := s.reject(&a, c.Rand); why != admitted {
		return account{queue: a.queue}, s.rejection(why, &a, c)
	}
	if a.late {
		s.hurried = s.at
	}
	from := start{a.queue, a.order, w.Flow, s.idle(&a), a.queue.delay}
	of = s.account(&from)
	of.queue = a.queue
	if s.runsAtOnce(&a) {
		s.admit(&from)
		return of, nil
	}
	s.join(&a, w, call)
	of.place = w
	return of, nil
}

// clear has all waiters leave their queues that would run by now.
func (s *Shedder) clear(now time.Time, state *State, c *Config) {
	s.advance(now)
	for w := s.excess(); w != nil; w = s.excess() {
		s.evict(w)
	}
	if state.Runnable >= state.processors() {
		return
	}
	for w := s.best(now, c); w != nil; w = s.best(now, c) {
		s.letIn(w)
	}
}

// end takes in how an observed request has ended. An answer has one waiter leave the queue: the
// request itself if it still waits, or else the next one.
func (s *Shedder) end(of *account, o spillway.Outcome) {
	of.queue.present--
	answered := o == spillway.OutcomeServed || o == spillway.OutcomeFailed
	switch w := of.place; {
	case w != nil && w.waiting && (answered || s.at > w.until):
		s.letIn(w)
	case w != nil && w.waiting:
		gone := 0.0
		if o == spillway.OutcomeAbandoned {
			gone = 1
		}
		s.leave(w, gone)
	case answered && !s.letOne(of.queue):
		s.letOne(s.queues[0])
	}
}

// letOne has one waiter of a queue run. It reports false if the queue has no waiter that may run.
func (s *Shedder) letOne(q *queue) bool {
	for q.n > 0 {
		if s.letIn(q.first()) {
			return true
		}
	}
	return false
}

// letIn has a waiter leave its queue. It reports whether the waiter runs: if its maximum wait has
// passed by now, it was rejected.
func (s *Shedder) letIn(w *Waiter) (runs bool) {
	q := w.queue
	if s.at > w.until {
		s.drop(w, w.by, w.maxWait.Seconds()*1000)
		return false
	}
	s.leave(w, 0)
	s.admit(&start{queue: q, order: w.order})
	if q == s.queues[0] && !q.limited {
		s.seeBusy(q.n == 0)
	}
	return true
}
