package shed_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/pace"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/shed"
)

// keyed is a limit that the test sets for each key.
type keyed struct {
	scopes  map[string]int // 0: the key has no separate limit
	free    map[string]bool
	entered []string
}

func (k *keyed) Ask(_ time.Time, key string) pace.Pace {
	return pace.Pace{Free: k.scopes[key] == 0 || k.free[key], Scope: k.scopes[key], Throughput: 1000, Latency: 0.02}
}

func (k *keyed) Enter(_ time.Time, call spillway.Call) spillway.Ticket {
	k.entered = append(k.entered, call.Key)
	return spillway.Ticket{By: k, Criticality: call.Criticality}
}

func (k *keyed) Take(time.Time, string, spillway.Criticality, time.Time) (spillway.Ticket, bool) {
	return spillway.Ticket{}, false
}

func (k *keyed) Working() (working, parked int)                      { return 1, 0 }
func (k *keyed) Settle(time.Time, spillway.Ticket, spillway.Outcome) {}

func (k *keyed) Suspend(_ time.Time, t spillway.Ticket) spillway.Ticket { return t }
func (k *keyed) Resume(_ time.Time, t spillway.Ticket) spillway.Ticket  { return t }

func newKeyed(t *testing.T) (*keyed, *shed.Shedder) {
	k := &keyed{scopes: map[string]int{}, free: map[string]bool{}}
	return k, must(t, shed.Config{Limit: k})
}

func arriveKey(s *shed.Shedder, now time.Time, key string, c spillway.Criticality, st shed.State) (shed.Decision, *shed.Waiter) {
	w := &shed.Waiter{Owner: key}
	return s.Arrive(now, &spillway.Call{Key: key, Criticality: c}, &st, w), w
}

// The limit of one key rejects CRITICAL requests of this key. It neither rejects nor holds
// back SHEDDABLE requests of another key.
func TestIsolation(t *testing.T) {
	k, s := newKeyed(t)
	k.scopes["a"] = 1
	rejected := 0
	for i := range 500 {
		now := at(float64(i))
		if d, _ := arriveKey(s, now, "a", spillway.Critical, idle); d.Verdict == shed.Rejected {
			rejected++
		}
		if d, _ := arriveKey(s, now, "b", spillway.Sheddable, idle); d.Verdict != shed.Run {
			t.Fatalf("after %d rejections of a: %+v for b", rejected, d)
		}
	}
	if rejected < 400 {
		t.Fatalf("only %d of a were rejected", rejected)
	}
	if d, _ := arriveKey(s, at(500), "a", spillway.Sheddable, idle); d.Verdict != shed.Rejected {
		t.Errorf("a lower class of a: %+v", d)
	}
	// A second limited key has a separate queue.
	k.scopes["c"] = 2
	if d, _ := arriveKey(s, at(500), "c", spillway.Sheddable, idle); d.Verdict != shed.Wait {
		t.Errorf("another limited key: %+v", d)
	}
}

// Isolation with what is learnt: pool a is offered three times its capacity, b is idle.
func TestIsolationOfPools(t *testing.T) {
	s := kind{pool: 8}.server(t, 2, 1)
	s.key = func(class spillway.Criticality) (string, []phase) {
		if class == spillway.Sheddable {
			return "b", []phase{{sleep: 20 * ms}}
		}
		return "a", []phase{{pool: 20 * ms}}
	}
	load := []spillway.Criticality{spillway.Critical, spillway.Critical, spillway.Sheddable}
	s.offer(1800, 2*time.Second, load...)
	s.fresh()
	s.offer(1800, 10*time.Second, load...)
	s.run(s.now.Add(200 * ms))
	t.Logf("served %v, rejected %v of %v", s.good, s.rejected, s.offered)
	if n := s.rejected[spillway.Sheddable.Index()]; n > 0 {
		t.Errorf("%d of the idle key rejected", n)
	}
	if got := float64(s.good[spillway.Critical.Index()]) / 10 / 400; got < 0.97 {
		t.Errorf("%.3f of the capacity of the busy key", got)
	}
	if s.rejected[spillway.Critical.Index()] == 0 {
		t.Error("nothing of the busy key was rejected")
	}
}

// A waiter for a processor whose key becomes limited holds back no other key.
func TestKeyBecomesLimitedWhileWaiting(t *testing.T) {
	k, s := newKeyed(t)
	var waiters []*shed.Waiter
	for i, key := range []string{"a", "b", "a"} {
		_, w := arriveKey(s, at(float64(i)), key, spillway.Critical, busy)
		waiters = append(waiters, w)
	}
	k.scopes["a"] = 1
	_, last := arriveKey(s, at(3), "a", spillway.Critical, busy)
	if w, _ := s.Next(at(4), idle); w != waiters[1] {
		t.Fatalf("got %+v, want the waiter of b", w)
	}
	if w, more := s.Next(at(4), idle); w != nil || more {
		t.Fatalf("a limited key: %v, busy %v", w, more)
	}
	if n := s.Waiting(); n != 3 {
		t.Errorf("%d wait, want 3", n)
	}
	k.free["a"] = true
	for i, want := range []*shed.Waiter{waiters[0], waiters[2], last} {
		if w, _ := s.Next(at(5), idle); w != want || w.Ticket.By == nil {
			t.Fatalf("waiter %d of the limited key is out of order", i)
		}
	}
	for _, w := range append(waiters, last) {
		if s.Expire(w) || s.Withdraw(w) {
			t.Error("a waiter left twice")
		}
	}
}

// A waiter may leave in the queue to which it was moved, exactly once.
func TestMovedWaiterLeavesOnce(t *testing.T) {
	for _, expire := range []bool{false, true} {
		k, s := newKeyed(t)
		_, w := arriveKey(s, t0, "a", spillway.Critical, busy)
		k.scopes["a"] = 1
		s.Next(at(1), idle)
		leave := s.Withdraw
		if expire {
			leave = s.Expire
		}
		if !leave(w) || leave(w) || s.Waiting() != 0 || (w.Err != nil) != expire {
			t.Errorf("expire %v: %d wait, %v", expire, s.Waiting(), w.Err)
		}
		k.free["a"] = true
		if w, _ := s.Next(at(2), idle); w != nil {
			t.Error("a waiter that had left runs")
		}
	}
}

// A request whose limit is free runs past the waiters of a limited key, but not past a
// waiter for the same processor.
func TestFreeKeyPassesWaitersOfALimit(t *testing.T) {
	k, s := newKeyed(t)
	k.scopes["a"] = 1
	arriveKey(s, t0, "a", spillway.CriticalPlus, idle)
	if d, _ := arriveKey(s, t0, "b", spillway.Sheddable, idle); d.Verdict != shed.Run {
		t.Errorf("%+v", d)
	}
	_, waits := arriveKey(s, t0, "b", spillway.Critical, busy)
	k.scopes["c"], k.free["c"] = 2, true
	if d, _ := arriveKey(s, t0, "c", spillway.Sheddable, idle); d.Verdict != shed.Wait {
		t.Errorf("past a waiter for a processor: %+v", d)
	}
	if w, _ := s.Next(at(1), idle); w != waits {
		t.Errorf("got %v first", w)
	}
}

// In the queue before a limit the lowest class makes place, of all classes of this key.
func TestEvictionByClassBeforeALimit(t *testing.T) {
	k, s := newKeyed(t)
	k.scopes["a"], k.scopes["b"] = 1, 2
	var low []*shed.Waiter
	for {
		d, w := arriveKey(s, t0, "a", spillway.Sheddable, idle)
		if d.Verdict == shed.Rejected {
			break
		}
		low = append(low, w)
	}
	_, other := arriveKey(s, t0, "b", spillway.Sheddable, idle)
	d, high := arriveKey(s, t0, "a", spillway.Critical, idle)
	if d.Verdict != shed.Wait || d.Evicted != low[len(low)-1] || !errors.Is(d.Evicted.Err, spillway.ErrRejected) {
		t.Fatalf("%+v, want the newest of the lowest class of a evicted", d)
	}
	k.free["a"] = true
	if w, _ := s.Next(at(1), idle); w != high {
		t.Error("the highest class is not first")
	}
	if w, _ := s.Next(at(1), idle); w != low[0] {
		t.Error("within a class the oldest is not first")
	}
	if !s.Withdraw(other) {
		t.Error("the waiter of another key has left")
	}
}

// A rejected share fades in time although its key is never asked for again.
func TestRejectedShareOfAForgottenKeyFades(t *testing.T) {
	k, s := newKeyed(t)
	k.scopes["a"] = 1
	for i := range 200 {
		arriveKey(s, at(float64(i)), "a", spillway.Critical, idle)
	}
	before := s.Stats(time.Time{}).Classes[2].RejectedRatio
	arriveKey(s, at(5000), "b", spillway.Critical, idle)
	if after := s.Stats(time.Time{}).Classes[2].RejectedRatio; before < 0.5 || after > 0.01 {
		t.Errorf("rejected share %.3f, later %.3f", before, after)
	}
}

// Where clients leave, the queue before a limit keeps its full capacity.
func TestQueueBeforeALimitWhereClientsLeave(t *testing.T) {
	for _, row := range []struct {
		leave bool
		want  int // 10 ms or 60 ms of the throughput
	}{{false, 10}, {true, 60}} {
		k, s := newKeyed(t)
		k.scopes["a"] = 1
		for i := range 300 { // for so long that a queue stands
			_, w := arriveKey(s, at(float64(i)), "a", spillway.Critical, idle)
			if row.leave {
				s.Withdraw(w)
			} else {
				s.Expire(w)
			}
		}
		n := 0
		for d, _ := arriveKey(s, at(300), "a", spillway.Critical, idle); d.Verdict == shed.Wait; n++ {
			d, _ = arriveKey(s, at(300), "a", spillway.Critical, idle)
		}
		if n != row.want {
			t.Errorf("clients leave: %v: %d may wait, want %d", row.leave, n, row.want)
		}
	}
}

// MaxInFlight is a Shedder with a fixed limit: the highest class gets every place, also where
// requests that began together end together, and nothing of the two lowest classes runs.
func TestFixedLimitServesByClass(t *testing.T) {
	for _, places := range []int{4, 24, 240} {
		for _, load := range []float64{5, 10} {
			k := kind{handler: []phase{{sleep: 20 * ms}}, capacity: 50 * float64(places), limit: concurrency.Config{Fixed: true, MaxInFlight: places}}
			s := k.server(t, 16, 1)
			s.offer(load*k.capacity, time.Second, allClasses...)
			s.fresh()
			s.offer(load*k.capacity, 2*time.Second, allClasses...)
			if n := s.shedder.Stats(time.Time{}).InFlight; n > places {
				t.Errorf("%d places, %vx: %d at work", places, load, n)
			}
			s.run(s.now.Add(200 * ms)) // until every request has ended
			t.Logf("%d places, %vx: served %v of %v", places, load, s.good, s.offered)
			if got := float64(s.good[3]) / float64(total(s.good)); got < 0.995 {
				t.Errorf("%d places, %vx: CRITICAL_PLUS gets %.4f of what fits", places, load, got)
			}
			if got := float64(total(s.good)) / 2 / k.capacity; got < 0.98 {
				t.Errorf("%d places, %vx: %.3f of the places are used", places, load, got)
			}
			if n := s.good[0] + s.good[1]; n > 0 {
				t.Errorf("%d places, %vx: %d requests of the two lowest classes served", places, load, n)
			}
		}
	}
}

// A process runs only now and then, for lack of the processor, and answers in bursts. A class
// is still served only if there is nothing to do for the one above.
func TestClassOrderOfAStarvedProcess(t *testing.T) {
	two := []spillway.Criticality{spillway.Sheddable, spillway.Critical}
	for _, stalled := range []time.Duration{15 * ms, 40 * ms, 90 * ms} {
		low, high := 0, 0
		for seed := range uint64(4) {
			s := blocking.server(t, 2, seed)
			s.deadline = time.Second
			s.forwards = func() float64 { return 0.4 }
			var stall func()
			stall = func() {
				for range s.processors {
					s.spawn(stalled, func() {})
				}
				s.after(time.Duration(float64(stalled)*(1+s.rand.Float64()/2)), stall)
			}
			s.offer(2.5*blocking.capacity, 3*time.Second, two...)
			stall()
			s.offer(2.5*blocking.capacity, 2*time.Second, two...)
			s.fresh()
			s.offer(2.5*blocking.capacity, 5*time.Second, two...)
			s.run(s.now.Add(200 * ms))
			low, high = low+s.good[0], high+s.good[2]
		}
		t.Logf("stalled for %v: SHEDDABLE %d, CRITICAL %d", stalled, low, high)
		if low > high/50 {
			t.Errorf("stalled for %v: %d SHEDDABLE beside %d CRITICAL", stalled, low, high)
		}
	}
}

// Requests come in bursts, and the server is idle before each. The lower class gets almost
// nothing of the capacity that the higher one alone would use.
func TestClassOrderInBursts(t *testing.T) {
	for _, every := range []time.Duration{5 * ms, 10 * ms, 20 * ms} {
		low, high := 0, 0
		for seed := range uint64(4) {
			s := blocking.server(t, 2, seed)
			s.deadline = time.Second
			s.forwards = func() float64 { return 0.4 }
			due := 0.0
			var burst func()
			burst = func() {
				pause := time.Duration(s.rand.ExpFloat64() * float64(every))
				for due += 1.25 * blocking.capacity * pause.Seconds(); due >= 1; due-- {
					s.arrive(spillway.Sheddable)
					s.arrive(spillway.Critical)
				}
				s.after(pause, burst)
			}
			burst()
			s.run(s.now.Add(3 * time.Second))
			s.fresh()
			s.run(s.now.Add(10 * time.Second))
			low, high = low+s.good[0], high+s.good[2]
		}
		t.Logf("a burst every %v: SHEDDABLE %d, CRITICAL %d", every, low, high)
		if low > high/18 {
			t.Errorf("a burst every %v: %d SHEDDABLE beside %d CRITICAL", every, low, high)
		}
	}
}

// The Ticket of a Shedder is the Limit's: suspended work gives its place to a waiter.
func TestSuspendedWorkMakesPlace(t *testing.T) {
	s := limited(t, concurrency.Config{Fixed: true, MaxInFlight: 1})
	first, _ := arrive(s, t0, spillway.Critical, idle)
	d, w := arrive(s, at(1), spillway.Critical, idle)
	if first.Verdict != shed.Run || d.Verdict != shed.Wait {
		t.Fatalf("%+v, %+v", first, d)
	}
	first.Ticket.Suspend(at(2))
	if got, _ := s.Next(at(2), idle); got != w {
		t.Fatal("the place of suspended work is not free")
	}
	first.Ticket.Resume(at(3))
	if n := s.Stats(time.Time{}).InFlight; n != 2 {
		t.Errorf("%d at work after Resume, want 2", n)
	}
	_, waits := arrive(s, at(3), spillway.Critical, idle)
	first.Ticket.Settle(at(4), spillway.OutcomeServed)
	if got, _ := s.Next(at(4), idle); got != nil {
		t.Error("more run than the limit allows")
	}
	w.Ticket.Settle(at(5), spillway.OutcomeServed)
	if got, _ := s.Next(at(5), idle); got != waits {
		t.Error("the last waiter does not run")
	}
}

// Neither a decision nor a waiter that moves to another queue allocates.
func TestAllocationsWithALimit(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := limited(t, concurrency.Config{Fixed: true, MaxInFlight: 1})
	now, w := t0, new(shed.Waiter)
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(time.Millisecond)
		call := spillway.Call{Key: "a"}
		d := s.Arrive(now, &call, &idle, nil)
		s.Arrive(now, &call, &idle, w)
		s.Next(now, idle)
		d.Ticket.Settle(now, spillway.OutcomeServed)
		if got, _ := s.Next(now, idle); got != w {
			t.Fatal("the waiter does not run")
		}
		w.Ticket.Settle(now, spillway.OutcomeServed)
	}); n != 0 {
		t.Errorf("%v allocations before a limit", n)
	}
	k, s := newKeyed(t)
	k.entered = make([]string, 0, 10_000)
	k.scopes["b"] = 1
	arriveKey(s, t0, "b", spillway.Critical, idle) // makes the queue
	if n := testing.AllocsPerRun(1000, func() {
		k.scopes["a"] = 0
		s.Arrive(now, &spillway.Call{Key: "a"}, &busy, w)
		k.scopes["a"] = 1
		s.Next(now, idle)
		s.Expire(w)
	}); n != 0 {
		t.Errorf("%v allocations to move a waiter", n)
	}
}

// Whatever keys are limited, and become so while requests wait: each waiter leaves exactly
// once, none runs that its limit holds back, and none waits for the limit of another.
func TestKeysAgainstModel(t *testing.T) {
	race.SkipOneGoroutine(t)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		k, s := newKeyed(t)
		waiting := map[*shed.Waiter]string{}
		left := func(w *shed.Waiter) {
			if _, ok := waiting[w]; !ok {
				t.Fatal("a waiter left twice")
			}
			delete(waiting, w)
		}
		allowed := func(key string) bool { return k.scopes[key] == 0 || k.free[key] }
		for op := range 3000 {
			now, key := at(float64(op)/4), string(rune('a'+r.IntN(4)))
			switch r.IntN(6) {
			case 0:
				k.scopes[key] = r.IntN(2) * int(key[0]-'a'+1)
			case 1:
				k.free[key] = !k.free[key]
			case 2, 3:
				d, w := arriveKey(s, now, key, allClasses[r.IntN(4)], shed.State{Processors: 1, Runnable: r.IntN(2)})
				if d.Evicted != nil {
					left(d.Evicted)
				}
				if d.Verdict == shed.Wait {
					waiting[w] = key
				} else if d.Verdict == shed.Run && !allowed(key) {
					t.Fatal("a request ran that its limit holds back")
				}
			case 4:
				w, _ := s.Next(now, idle)
				if w == nil {
					for _, key := range waiting {
						if allowed(key) {
							t.Fatalf("seed %d, operation %d: a waiter of a free key does not run", seed, op)
						}
					}
					continue
				}
				if w.Err == nil && !allowed(waiting[w]) {
					t.Fatal("a waiter ran that its limit holds back")
				}
				left(w)
			default:
				for w := range waiting {
					if !s.Expire(w) || s.Withdraw(w) {
						t.Fatal("a waiter does not leave exactly once")
					}
					left(w)
					break
				}
			}
			if s.Waiting() != len(waiting) {
				t.Fatalf("%d wait, the model says %d", s.Waiting(), len(waiting))
			}
		}
	}
}

// A quiet time says nothing of what is served while a limit is reached: a burst after it may wait for as long as one at the start. Ten
// requests of 20 ms at a time are 30 within MaxWait.
func TestBurstAfterAQuietTime(t *testing.T) {
	for name, c := range map[string]concurrency.Config{
		"fixed": {Fixed: true, MaxInFlight: 10}, "max": {MaxInFlight: 10}, "max of a key": {MaxInFlightByKey: map[string]int{"a": 10}},
	} {
		for _, quiet := range []int{0, 100} { // seconds, with one request each
			s := limited(t, c)
			for i := range quiet {
				d, _ := arriveKey(s, at(1000*float64(i)), "a", spillway.Critical, idle)
				d.Ticket.Settle(at(1000*float64(i)+20), spillway.OutcomeServed)
			}
			rejected := 0
			for range 30 {
				if d, _ := arriveKey(s, at(1000*float64(quiet)), "a", spillway.Critical, idle); d.Verdict == shed.Rejected {
					rejected++
				}
			}
			if rejected > 0 {
				t.Errorf("%s, after %d quiet seconds: %d of 30 were rejected", name, quiet, rejected)
			}
		}
	}
}
