package shed

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// naiveRequest is a request at work, in the naive model of what callers use.
type naiveRequest struct {
	flow   uint64
	began  time.Duration
	turns  int // since then
	ticket spillway.Ticket
}

// naive adds up, for each caller, how long each of its requests was at work in each epoch.
type naive struct {
	t       *testing.T
	s       *Shedder
	c       *callers
	first   time.Time
	at      time.Duration
	working []naiveRequest
	used    map[uint64]float64
}

func (n *naive) now() time.Time { return n.first.Add(n.at) }

// work counts a request in the epoch that began then.
func (n *naive) work(r *naiveRequest, epoch time.Duration) {
	if r.turns < 2 {
		n.used[r.flow] += (n.at - max(epoch, r.began)).Seconds()
	}
}

func (n *naive) advance() {
	epoch, turns := n.c.began, n.c.turns
	n.c.last = n.at // requests are rejected all the time
	n.c.advance(n.at, time.Second)
	if n.c.began == epoch {
		return
	}
	for i := range n.working {
		r := &n.working[i]
		n.work(r, epoch)
		if n.c.turns != turns {
			r.turns++
		}
	}
	for flow := range n.used {
		n.used[flow] *= fade
	}
	n.check()
}

func (n *naive) check() {
	held := map[uint64]int{}
	for _, r := range n.working {
		if r.turns < 2 {
			held[r.flow]++
		}
	}
	for flow, used := range n.used {
		who, _ := n.c.who(flow)
		if who == &n.c.others || math.Abs(who.used-used) > 1e-6 || who.held() != held[flow] {
			n.t.Fatalf("at %v: caller %d used %v and holds %d, the model says %v and %d", n.at, flow, who.used, who.held(), used, held[flow])
		}
	}
}

func (n *naive) admit(flow uint64) {
	n.c.count(flow, 0.02)
	n.c.admit()
	r := naiveRequest{flow: flow, began: n.at, ticket: spillway.Ticket{By: n.s}}
	n.s.at = n.at
	n.s.charge(&r.ticket, &start{queue: n.s.queues[0], flow: flow})
	n.working = append(n.working, r)
}

// leave ends a request, or suspends it.
func (n *naive) leave(i int, suspends bool) {
	r := &n.working[i]
	n.work(r, n.c.began)
	if suspends {
		r.ticket.Suspend(n.now())
		r.ticket.Suspend(n.now()) // nested
		return
	}
	r.ticket.Settle(n.now(), spillway.OutcomeServed)
	n.working = append(n.working[:i], n.working[i+1:]...)
}

func (n *naive) resume(r *naiveRequest) {
	r.ticket.Resume(n.now())
	r.ticket.Resume(n.now())
	r.began, r.turns = n.at, 0
}

// TestUseAgainstNaiveModel feeds admissions, ends and suspensions at random times to both.
func TestUseAgainstNaiveModel(t *testing.T) {
	race.SkipOneGoroutine(t)
	for seed := range uint64(20) {
		u := rand.New(rand.NewPCG(seed, 3))
		s, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		n := &naive{t: t, s: s, c: &s.queues[0].callers[0], first: time.Unix(1e9, 0), used: map[uint64]float64{}}
		s.advance(n.first)
		s.faded = math.MaxInt64 // the test advances
		n.c.rejected(0, 0)
		for flow := range uint64(5) {
			n.used[flow+1] = 0
			n.c.count(flow+1, 0.02) // known from the second request on
			n.c.count(flow+1, 0.02)
		}
		for range 5000 {
			n.at += time.Duration(u.IntN(10)) * time.Millisecond
			n.advance()
			switch op := u.IntN(12); {
			case op < 6 && len(n.working) < 100:
				n.admit(1 + u.Uint64N(5))
			case op < 11 && len(n.working) > 0:
				n.leave(u.IntN(len(n.working)), false)
			case len(n.working) > 0:
				i := u.IntN(len(n.working))
				n.leave(i, true)
				n.at += time.Duration(u.IntN(3000)) * time.Microsecond
				n.resume(&n.working[i])
			}
		}
		for len(n.working) > 0 {
			n.leave(0, false)
		}
		n.check()
		for i := range s.accounts.all[1:] {
			if s.accounts.all[i+1].class != nil {
				t.Fatal("an account was not closed")
			}
		}
	}
}

// A caller whose counts were forgotten meanwhile is not charged for requests that began before.
func TestAccountsOfAnOldEpisode(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t0 := time.Unix(1e9, 0)
	s.advance(t0)
	c := &s.queues[0].callers[0]
	c.rejected(0, 0)
	c.count(7, 0.02)
	c.count(7, 0.02)
	ticket := spillway.Ticket{By: s}
	s.charge(&ticket, &start{queue: s.queues[0], flow: 7})
	c.advance(time.Hour, 0) // the overload is over
	c.rejected(time.Hour, 0)
	c.count(7, 0.02)
	c.count(7, 0.02)
	ticket.Settle(t0.Add(time.Hour+time.Second), spillway.OutcomeServed)
	if who, _ := c.who(7); who.held() != 0 || who.used != 0 || c.groups[0].held() != 0 {
		t.Errorf("%+v and %+v", *who, c.groups[0])
	}
}

// Work begins when the wait behind the limit ends, in the time of the epoch of the class.
func TestTimesOfAnAccount(t *testing.T) {
	class, who := &callers{began: 2 * time.Second}, new(caller)
	a := account{class: class, who: who, began: 5 * time.Second, delay: time.Second}
	if a.enter(); who.used != -4 || who.fresh != 1 {
		t.Errorf("used %v, %d at work", who.used, who.fresh)
	}
	if a.leave(9 * time.Second); who.used != 3 || who.spent != 3 || who.fresh != 0 {
		t.Errorf("used %v, spent %v, %d at work", who.used, who.spent, who.fresh)
	}
	class.turns = 2
	if a.enter(); who.fresh != 1 {
		t.Error("it is not at work")
	}
	class.turns += 2
	if a.leave(10 * time.Second); who.ended != 1 {
		t.Error("a request that began two turns ago was counted")
	}
}

// Without a limit the shedder counts the suspensions of a ticket, and charges no time between the
// first and the last of them.
func TestSuspensionsWithoutALimit(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	who := new(caller)
	a := account{class: new(callers), who: who}
	a.enter()
	ticket := spillway.Ticket{By: s, Account: s.accounts.open(a)}
	for i, want := range []struct{ suspended, working int }{{1, 0}, {2, 0}, {1, 0}, {0, 1}} {
		if i < 2 {
			ticket = s.Suspend(now, ticket)
		} else {
			ticket = s.Resume(now, ticket)
		}
		if int(ticket.Suspended) != want.suspended || who.held() != want.working {
			t.Errorf("step %d: suspended %d times, %d at work; want %v", i, ticket.Suspended, who.held(), want)
		}
	}
}
