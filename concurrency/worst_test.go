package concurrency

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// Each test begins in the worst state that its invariant is for.

// A deafPool works on for clients that have left: nothing tells it. They leave after their patience, so that the Limiter sees no more of
// their requests.
type deafPool struct {
	l        *Limiter
	now      time.Time
	rng      *rand.Rand
	slots    int
	service  time.Duration
	patience time.Duration
	waiting  []*asked        // for an answer
	queue    []*asked        // of the pool; nil: nobody ever waited for it
	busy     map[*asked]bool // in the slots
	observes bool            // lets all in, as in mode observe
	served   int             // in time
	let      int             // in
}

type asked struct {
	began, ends time.Time
	ticket      spillway.Ticket
	left        bool
}

func newDeafPool(tb testing.TB, backlog int) *deafPool {
	race.SkipOneGoroutine(tb)
	p := &deafPool{l: must(tb, Config{}), now: t0, rng: rand.New(rand.NewPCG(1, 1)), slots: 2, service: 50 * time.Millisecond, patience: time.Second, busy: map[*asked]bool{}}
	for range backlog {
		p.queue = append(p.queue, &asked{left: true})
	}
	return p
}

func (p *deafPool) run(d time.Duration, perSecond float64) {
	for end := p.now.Add(d); p.now.Before(end); p.now = p.now.Add(time.Millisecond) {
		p.waiting = slices.DeleteFunc(p.waiting, func(a *asked) bool {
			if !a.left && p.now.Sub(a.began) >= p.patience {
				a.left = true
				a.ticket.Settle(p.now, spillway.OutcomeAbandoned)
			}
			return a.left
		})
		for a := range p.busy {
			if !a.ends.After(p.now) {
				delete(p.busy, a)
				if !a.left {
					a.left = true
					p.served++
					a.ticket.Settle(p.now, spillway.OutcomeServed)
				}
			}
		}
		for p.rng.Float64() < perSecond/(1000+perSecond) {
			p.send()
		}
		for len(p.queue) > 0 && len(p.busy) < p.slots {
			a := p.queue[0]
			a.ends = p.now.Add(p.service)
			p.queue, p.busy[a] = p.queue[1:], true
		}
	}
}

func (p *deafPool) send() {
	a := &asked{began: p.now}
	if p.observes {
		a.ticket = p.l.Enter(p.now, call("a"))
	} else {
		var err error
		if a.ticket, err = p.l.Admit(p.now, call("a")); err != nil {
			return
		}
	}
	p.let++
	p.waiting, p.queue = append(p.waiting, a), append(p.queue, a)
}

// Cold, behind a backlog, in a standing overload of clients that hang up, and switched on in it: 15 s after the time that the pool needs for
// what waits, 80 % of what it can do is served.
func TestColdStart(t *testing.T) {
	const capacity = 40.0
	for _, times := range []float64{2, 10} {
		for _, backlog := range []int{10, 1000} {
			for _, observed := range []time.Duration{0, 15 * time.Second} {
				t.Run(fmt.Sprint(times, " times, ", backlog, " waiting, observed for ", observed), func(t *testing.T) {
					p := newDeafPool(t, backlog)
					p.observes = true
					p.run(observed, times*capacity)
					p.observes = false
					drains := time.Duration(float64(len(p.queue)) / capacity * float64(time.Second))
					p.run(drains+15*time.Second, times*capacity)
					p.served = 0
					p.run(10*time.Second, times*capacity)
					if p.served < 10*capacity*8/10 {
						t.Errorf("%d served in 10 s, want %v: %+v", p.served, 10*capacity*8/10, p.l.Stats(p.now))
					}
				})
			}
		}
	}
}

// While nothing is answered, no more is let in than was in flight when the first request ended, and as many again until as many have ended;
// then one at a time. It is visible.
func TestUnknownIsBounded(t *testing.T) {
	p := newDeafPool(t, 100_000)
	p.run(3*time.Second, 400)
	if p.let > 3*400+50 || !p.l.Stats(p.now).Keys[1].Unknown {
		t.Errorf("%d were let in in 3 s: %+v", p.let, p.l.Stats(p.now))
	}
	p.let = 0
	p.run(30*time.Second, 400)
	if p.let > 31 {
		t.Errorf("%d were let in in 30 s, want one in each second that a client waits", p.let)
	}
	if k := p.l.Stats(p.now).Keys[1]; !k.Unknown || k.Limit != 1 {
		t.Errorf("%+v", k)
	}
}

// Requests that only wait have not ended: watchers and long polls of a cold start are let in, however many.
func TestWatchersAreNotUnknown(t *testing.T) {
	p := newDeafPool(t, 100_000)
	p.patience = time.Hour
	p.run(60*time.Second, 50)
	if p.let < 60*45 || p.l.Stats(p.now).Keys[1].Unknown {
		t.Errorf("%d of about 3000 were let in: %+v", p.let, p.l.Stats(p.now))
	}
}

// A request that hangs does not end the trickle: it is parked after ten seconds, and the next one is let in.
func TestTrickleThatHangs(t *testing.T) {
	p := newDeafPool(t, 100_000)
	p.run(5*time.Second, 400)
	p.patience = time.Hour
	p.let = 0
	p.run(60*time.Second, 400)
	if p.let < 3 || p.let > 10 {
		t.Errorf("%d were let in in a minute", p.let)
	}
}

// The backend is away for a minute: every request ends without an answer, whatever was known. Two seconds after it is back, all of it is used.
func TestRestartOfTheBackend(t *testing.T) {
	for _, load := range []int{200, 1000} { // half and 2.5 times the capacity
		p := newPool(t, Config{})
		p.patience, p.outcome = 300*time.Millisecond, spillway.OutcomeTimedOut
		p.run(10*time.Second, 8, load)
		p.run(time.Minute, 0, load)
		p.run(2*time.Second, 8, load)
		p.served = 0
		p.run(5*time.Second, 8, load)
		if want := min(load, 400) * 5 * 9 / 10; p.served < want {
			t.Errorf("%d per second: %d served in 5 s, want %d: %+v", load, p.served, want, p.state())
		}
	}
}

// Poisoned: a base latency that is far too long or too short is found out by the next trials, and a queue in spite of it.
func TestPoisonedBaseLatency(t *testing.T) {
	for _, factor := range []float64{0.1, 10} {
		p := newPool(t, Config{})
		p.run(5*time.Second, 8, 1000)
		for _, l := range []*limit{p.l.keys[1].limit, p.l.all} {
			l.base *= factor
			l.latency.reset(l.at, l.base)
			if l.state == Limiting {
				l.resize()
			}
		}
		p.run(90*time.Second, 8, 1000)
		p.served = 0
		p.run(10*time.Second, 8, 1000)
		if k := p.state(); p.served < 4000*9/10 || k.Limiting() && k.Limit > 48 {
			t.Errorf("%v times the base latency: %d of 4000 served: %+v", factor, p.served, k)
		}
	}
}

// Starved: while heartbeats come late, nothing is learnt, and a limit that was found neither vanishes nor shrinks to nothing.
func TestStarvedFromTheStart(t *testing.T) {
	p := newPool(t, Config{})
	p.beats, p.late = true, 200*time.Millisecond
	p.run(20*time.Second, 8, 300)
	if p.rejected > 6000/100 {
		t.Errorf("%d of 6000 were rejected at three quarters of the capacity", p.rejected)
	}
	p.late = 0
	p.run(10*time.Second, 8, 1000)
	p.served = 0
	p.run(5*time.Second, 8, 1000)
	if p.served < 2000*9/10 || !p.state().Limiting() {
		t.Errorf("%d of 2000 served after the starvation: %+v", p.served, p.state())
	}
}
