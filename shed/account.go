package shed

import (
	"time"

	"github.com/seed90641741/spillway"
)

// An account charges the time of a request at work to its caller.
type account struct {
	class   *callers
	who     *caller
	episode uint64        // class.episode when the request began
	taken   uint64        // who.taken when the request began
	turn    int           // class.turns when the request began to work, or went on
	within  int           // 1 if the caller was within its fair share, else 0
	began   time.Duration // when the request began to work, or went on after a suspension
	delay   time.Duration // its wait behind the limit: not charged, as the caller is not the cause
	next    uint32        // for an unused account: the number of the next unused one; 0: none

	queue *queue  // queue at which an observed request arrived; nil: the request is not observed
	place *Waiter // the Waiter of an observed request that would wait
}

// accounts holds all accounts. A [spillway.Ticket] has the number of its account.
type accounts struct {
	all  []account // number 0 is not used
	free uint32    // the first of the list of unused accounts; 0: the list is empty
}

// open returns the number of a new account. It allocates only if more requests are charged at
// the same time than ever before.
func (a *accounts) open(of account) uint32 {
	if len(a.all) == 0 {
		a.all = make([]account, 1, 256)
	}
	n := a.free
	if n == 0 {
		n = uint32(len(a.all))
		a.all = append(a.all, of)
		return n
	}
	a.free = a.all[n].next
	a.all[n] = of
	return n
}

func (a *accounts) close(n uint32) {
	a.all[n] = account{next: a.free}
	a.free = n
}

// charge opens an account for a request that begins to work, if the callers of its class are
// counted.
func (s *Shedder) charge(t *spillway.Ticket, from *start) {
	if a := s.account(from); a.class != nil {
		t.By, t.Account = s, s.accounts.open(a)
	}
}

// account returns the account of a request that begins to work. Its field class is nil if the
// callers of the class are not counted.
func (s *Shedder) account(from *start) (a account) {
	class := &from.queue.callers[from.order.class()]
	if !class.active {
		return a
	}
	who, _ := class.who(from.flow)
	a = account{class: class, who: who, episode: class.episode, taken: who.taken, within: from.order.rank() % 2, began: s.at, delay: from.delay}
	a.enter()
	class.need(s.at, 0)
	return a
}

// enter counts a request that begins to work, if its caller is still counted.
func (a *account) enter() {
	if a.class == nil || a.class.episode != a.episode {
		return
	}
	a.turn = a.class.turns
	in := (a.began + a.delay - a.class.began).Seconds()
	a.class.groups[a.within].enter(in)
	if a.who.taken == a.taken {
		a.who.enter(in)
	}
}

// leave counts a request that stops working.
func (a *account) leave(at time.Duration) {
	c := a.class
	if c == nil || c.episode != a.episode || c.turns-a.turn > 1 {
		return // it is parked
	}
	took := max(0, at-a.began-a.delay)
	in := a.began + a.delay + took - c.began
	fresh := c.turns == a.turn
	c.groups[a.within].leave(in.Seconds(), took.Seconds(), fresh)
	if a.who.taken == a.taken {
		a.who.leave(in.Seconds(), took.Seconds(), fresh)
	}
}

// Settle implements [spillway.Settler]; use [spillway.Ticket.Settle].
func (s *Shedder) Settle(now time.Time, t spillway.Ticket, o spillway.Outcome) {
	s.mu.Lock()
	s.advance(now)
	a := &s.accounts.all[t.Account]
	if t.Suspended == 0 {
		a.leave(s.at)
	}
	if a.queue != nil {
		s.end(a, o)
	}
	s.accounts.close(t.Account)
	s.mu.Unlock()
	if limit := s.config.Load().Limit; limit != nil {
		limit.Settle(now, t, o)
	}
}

// Suspend implements [spillway.Suspender]; use [spillway.Ticket.Suspend].
func (s *Shedder) Suspend(now time.Time, t spillway.Ticket) spillway.Ticket {
	first := t.Suspended == 0
	if limit := s.config.Load().Limit; limit != nil {
		t = limit.Suspend(now, t)
	} else {
		t.Suspended++
	}
	if first {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.advance(now)
		s.accounts.all[t.Account].leave(s.at)
	}
	return t
}

// Resume implements [spillway.Suspender]; use [spillway.Ticket.Resume].
func (s *Shedder) Resume(now time.Time, t spillway.Ticket) spillway.Ticket {
	if limit := s.config.Load().Limit; limit != nil {
		t = limit.Resume(now, t)
	} else {
		t.Suspended--
	}
	if t.Suspended == 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.advance(now)
		a := &s.accounts.all[t.Account]
		a.began = s.at
		a.enter()
	}
	return t
}

// Answer implements [spillway.Witness]; use [spillway.Ticket.Answer].
func (s *Shedder) Answer(now time.Time, t spillway.Ticket) {
	if limit, ok := s.config.Load().Limit.(spillway.Witness); ok {
		limit.Answer(now, t)
	}
}

// Leave implements [spillway.Witness]; use [spillway.Ticket.Leave].
func (s *Shedder) Leave(now time.Time, t spillway.Ticket) {
	if limit, ok := s.config.Load().Limit.(spillway.Witness); ok {
		limit.Leave(now, t)
	}
}

var _ interface {
	spillway.Suspender
	spillway.Witness
} = (*Shedder)(nil)
