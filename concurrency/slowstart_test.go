package concurrency

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

var unanswered = []spillway.Outcome{spillway.OutcomeTimedOut, spillway.OutcomeAbandoned}

// A pool serves its requests first in, first out, and they end after three services. So each one that gets a slot ends soon afterwards,
// and nothing is answered: latency is the deadline, whatever is in flight. A search finds out how many are answered.
func TestAllEndAtTheirDeadlines(t *testing.T) {
	const slots, capacity = 8, 400 // per second
	for _, o := range unanswered {
		for _, load := range []int{2, 5, 20} {
			for seed := range uint64(3) {
				p := newPool(t, Config{})
				p.fixed, p.rng = true, rand.New(rand.NewPCG(seed, 7))
				p.run(2*time.Second, slots, capacity/2)
				p.patience, p.outcome = 65*time.Millisecond, o
				p.l.config.Fixed = true // learns nothing until all are late
				p.run(time.Second, slots, load*capacity)
				p.served = 0
				p.run(time.Second, slots, load*capacity)
				if p.served > capacity/10 {
					t.Fatalf("%v, %d times the capacity, seed %d: %d were answered without a limit: this is no test", o, load, seed, p.served)
				}
				p.l.config.Fixed = false
				p.run(10*time.Second, slots, load*capacity)
				p.served = 0
				p.run(10*time.Second, slots, load*capacity)
				if k := p.state(); p.served < 10*capacity*9/10 || !k.Limiting() {
					t.Errorf("%v, %d times the capacity, seed %d: %d answered in 10 s, want at least %d; %+v", o, load, seed, p.served, 10*capacity*9/10, k)
				}
			}
		}
	}
}

// Where the backend has no queue, less in flight does not help late requests: few of them are rejected, and none once it is known how few are
// answered.
func TestLateWithoutAQueue(t *testing.T) {
	for _, o := range unanswered {
		p := newPool(t, Config{})
		p.service, p.patience, p.outcome = 300*time.Millisecond, 30*time.Millisecond, o
		var rejected []int
		for range 4 {
			before := p.rejected
			p.run(time.Minute, 10_000, 500)
			rejected = append(rejected, p.rejected-before)
		}
		if rejected[0] > 30_000*6/100 || rejected[3] > 30_000/100 {
			t.Errorf("%v: rejected %d of 30000 in each minute, want at most 3 %%, and 1 %% in the last", o, rejected)
		}
	}
}

// A backend without a queue answers nothing for five seconds, and is then as quick as before. Meanwhile one request at a time is let in; two
// seconds later nothing is rejected.
func TestRecoveryOfAnOutage(t *testing.T) {
	for _, o := range unanswered {
		for seed := range uint64(5) {
			p := newPool(t, Config{})
			p.rng = rand.New(rand.NewPCG(seed, 8))
			p.run(5*time.Second, 10_000, 500)
			p.patience, p.outcome = 250*time.Millisecond, o
			p.service *= 200
			p.run(2*time.Second, 10_000, 500)
			p.rejected = 0
			p.run(3*time.Second, 10_000, 500)
			if p.rejected < 1500*85/100 {
				t.Errorf("%v, seed %d: only %d of about 1500 were rejected while nothing was answered: %+v", o, seed, p.rejected, p.l.Stats(p.now))
			}
			p.service /= 200
			p.run(2*time.Second, 10_000, 500)
			p.served, p.rejected = 0, 0
			p.run(5*time.Second, 10_000, 500)
			if p.rejected > 25 {
				t.Errorf("%v, seed %d: rejected %d of 2500 after the recovery: %+v", o, seed, p.rejected, p.state())
			}
		}
	}
}

// Clients that hang up sooner than any request was answered say nothing of the backend.
func TestClientsWithoutPatience(t *testing.T) {
	for _, o := range unanswered {
		p := newPool(t, Config{})
		p.fixed, p.service = true, 100*time.Millisecond
		p.run(2*time.Second, 10_000, 500)
		p.patience, p.outcome = 50*time.Millisecond, o
		for range 1000 {
			p.run(10*time.Millisecond, 10_000, 500)
			if k := p.state(); k.Limiting() {
				t.Fatalf("%v: %+v", o, k)
			}
		}
	}
}

// Two keys wait for one pool, and nearly all of their requests are late: they are searched together. A third key, which waits for
// nothing, has no limit.
func TestLateKeysAreSearchedTogether(t *testing.T) {
	p := newPool(t, Config{})
	p.fixed, p.patience, p.outcome = true, 65*time.Millisecond, spillway.OutcomeTimedOut
	other := 0
	send := func(d time.Duration) {
		for end := p.now.Add(d); p.now.Before(end); p.now = p.now.Add(time.Millisecond) {
			p.finish()
			p.expire()
			for i := range 2 {
				if ticket, err := p.l.Admit(p.now, call([]string{"a", "b"}[i])); err == nil {
					p.queue = append(p.queue, busy{began: p.now, ticket: &ticket})
				}
			}
			p.start(8)
			if ticket, err := p.l.Admit(p.now, call("c")); err == nil {
				ticket.Settle(p.now, spillway.OutcomeServed)
			} else {
				other++
			}
		}
	}
	send(10 * time.Second)
	p.served, other = 0, 0
	send(10 * time.Second)
	if p.served < 4000*9/10 || other > 100 {
		t.Errorf("%d of 4000 answered, and %d of 10000 requests of the other key rejected", p.served, other)
	}
}

// Handlers that do not know of their deadlines do all of the work, and in an overload all of it is too late. That it is done is
// throughput: without it no limit would keep the queue short.
func TestHandlersIgnoreTheirDeadlines(t *testing.T) {
	for _, deadline := range []time.Duration{10 * time.Millisecond, 65 * time.Millisecond} {
		for seed := range uint64(3) {
			p := newPool(t, Config{})
			p.fixed, p.deaf, p.rng = true, deadline, rand.New(rand.NewPCG(seed, 10))
			p.run(3*time.Second, 8, 2000)
			for range 100 {
				p.run(100*time.Millisecond, 8, 2000)
				if k := p.state(); !k.Limiting() || k.InFlight > 48 {
					t.Fatalf("%v, seed %d: %+v", deadline, seed, k)
				}
			}
		}
	}
}

// Answers that come after their deadlines show that requests take longer than clients wait. When none comes in time the limit is
// unknown, although nobody has waited for as long as an answer takes.
func TestAnswersAfterTheirDeadlines(t *testing.T) {
	l := newLimit(0, false)
	l.latency.reset(0, 1.6)
	l.hear(true, 1, 1)
	for range 2 * round {
		l.advance(l.at + 10*time.Millisecond)
		l.hear(false, 1, 1)
	}
	if !l.slow.unknown() {
		t.Error("no answer has come in time, and the limit is not unknown")
	}
	l = newLimit(0, false)
	l.latency.reset(0, 1.6)
	l.hear(true, 1, 2)
	for range 2 * round {
		l.advance(l.at + 10*time.Millisecond)
		l.hear(false, 1, 2) // leaves early
	}
	if l.slow.unknown() {
		t.Error("clients without patience make the limit unknown")
	}
}
