package throttle

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// TestCalmAcceptsChangeNothing feeds the same calls to two throttles. One of them takes the lock
// for each of them. Both know and decide the same.
func TestCalmAcceptsChangeNothing(t *testing.T) {
	race.SkipOneGoroutine(t)
	var counted, limited int
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		quick, exact := twins(t, seed)
		rejected := [...]float64{0, 0.45, 0, 0.6, 0.02, 1, r.Float64()} // shares of calls, one after another
		now := time.Unix(1e9, 0)
		for i := range 4000 {
			now = now.Add(time.Duration(r.Int64N(int64(600 * time.Microsecond))))
			if r.IntN(1000) == 0 {
				now = now.Add(time.Duration(r.Int64N(int64(3 * time.Second))))
			}
			call := spillway.Call{Criticality: spillway.Critical + spillway.Criticality(r.IntN(2))}
			o := outcomes[r.IntN(len(outcomes))]
			if r.Float64() < rejected[i/400%len(rejected)] {
				o = spillway.OutcomeOverloaded
			}
			if r.IntN(100) == 0 {
				quick.Advise(now, call.Criticality, 0.2)
				exact.Advise(now, call.Criticality, 0.2)
			}
			a, errA := quick.Admit(now, call)
			b, errB := exact.Admit(now, call)
			if (errA == nil) != (errB == nil) {
				t.Fatalf("seed %d, call %d: %v and %v", seed, i, errA, errB)
			}
			if errA != nil {
				limited++
			}
			ended := now.Add(time.Duration(r.Int64N(int64(100 * time.Microsecond))))
			a.Settle(ended, o)
			exact.classes[call.Criticality.Index()].calm.Store(0)
			b.Settle(ended, o)
			counted += int(quick.classes[call.Criticality.Index()].served.Load())
			if r.IntN(10) == 0 && quick.Stats(now) != exact.Stats(now) {
				t.Fatalf("seed %d, call %d: %+v, want %+v", seed, i, quick.Stats(now), exact.Stats(now))
			}
		}
	}
	if counted == 0 || limited == 0 {
		t.Errorf("%d accepts without the lock, %d rejections: the test needs both", counted, limited)
	}
}

var outcomes = [...]spillway.Outcome{spillway.OutcomeServed, spillway.OutcomeServed, spillway.OutcomeFailed, spillway.OutcomeAbandoned}

func twins(t *testing.T, seed uint64) (a, b *Throttle) {
	t.Helper()
	made := func() *Throttle {
		random := rand.New(rand.NewPCG(seed, 4))
		th, err := New(Config{Window: 2 * time.Second, ProbeInterval: 20 * time.Millisecond, Rand: random.Float64})
		if err != nil {
			t.Fatal(err)
		}
		return th
	}
	return made(), made()
}

// TestCalmAcceptsAreHeard: the time of the last accept is known to a millisecond, also if Stats is
// read so often that no accept takes the lock.
func TestCalmAcceptsAreHeard(t *testing.T) {
	th, _ := twins(t, 1)
	now := time.Unix(1e9, 0)
	for range 1000 {
		now = now.Add(resolution / 2)
		th.Stats(now)
		ticket, err := th.Admit(now, spillway.Call{})
		if err != nil {
			t.Fatal(err)
		}
		ticket.Settle(now, spillway.OutcomeServed)
	}
	th.Stats(now)
	l := th.classes[spillway.Critical.Index()].limiter
	if at := th.clock.heard(now); at-l.accepted > resolution || l.accepted > at || l.settled != l.accepted {
		t.Errorf("the last accept is known to be at %v and %v, and was at %v", l.accepted, l.settled, at)
	}
}

// TestCalmAcceptsAreCounted: none is lost if goroutines count and read at the same time.
func TestCalmAcceptsAreCounted(t *testing.T) {
	th, _ := twins(t, 1)
	now := time.Unix(1e9, 0)
	const goroutines, calls = 4, 2000
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for i := range calls {
				ticket, err := th.Admit(now, spillway.Call{})
				if err != nil {
					t.Error(err)
					return
				}
				ticket.Settle(now, spillway.OutcomeServed)
				if i%100 == 0 {
					th.Stats(now)
				}
			}
		})
	}
	all.Wait()
	if s := th.Stats(now)[spillway.Critical.Index()]; s.Accepts != goroutines*calls || s.Requests != goroutines*calls {
		t.Errorf("%v accepts of %v requests, want %d of as many", s.Accepts, s.Requests, goroutines*calls)
	}
}
