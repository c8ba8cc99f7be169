package shed_test

import (
	"flag"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/shed"
)

// A group is callers that each ask at a rate, at random.
type group struct {
	callers int
	rate    float64 // of each, as a share of the capacity
	class   spillway.Criticality
	names   func() uint64  // of each request; nil: each caller has one
	burst   int            // requests at once; 0: 1
	key     string         // of the requests
	handler func() []phase // of each request; nil: the server's

	offered, served int
}

func (g *group) share() float64 { return float64(g.served) / float64(g.offered) }

// compete has groups ask for a while, and returns how many requests per second were served.
// The first two seconds do not count.
func (s *server) compete(capacity float64, length time.Duration, groups ...*group) float64 {
	s.fresh()
	from := s.now.Add(2 * time.Second)
	end := from.Add(length)
	of := make(map[uint64]*group)
	s.ended = func(r *request, rejected bool) {
		if g := of[r.waiter.Flow]; !r.arrived.Before(from) && g != nil {
			g.offered++
			if !rejected && s.now.Sub(r.arrived) <= s.deadline {
				g.served++
			}
		}
	}
	flow := uint64(0)
	for _, g := range groups {
		for range g.callers {
			flow += 0x9e3779b97f4a7c15 // as a hash is: any bits
			own := flow
			of[own] = g
			var next func()
			next = func() {
				if s.now.After(end) {
					return
				}
				for range max(1, g.burst) {
					name := own
					if g.names != nil {
						name = g.names()
						of[name] = g
					}
					handler := s.handler
					if g.handler != nil {
						handler = g.handler()
					}
					s.arriveWith(g.class, name, g.key, handler)
				}
				s.after(time.Duration(s.rand.ExpFloat64()/(g.rate*capacity)*float64(max(1, g.burst))*float64(time.Second)), next)
			}
			s.after(time.Duration(s.rand.ExpFloat64()/(g.rate*capacity)*float64(time.Second)), next)
		}
	}
	s.run(end.Add(200 * ms))
	all := 0
	for _, g := range groups {
		all += g.served
	}
	return float64(all) / length.Seconds()
}

// limitedTo24 is a server with MaxInFlight.
var limitedTo24 = kind{handler: []phase{{sleep: 20 * ms}}, capacity: 1200, limit: concurrency.Config{Fixed: true, MaxInFlight: 24}}

var kinds = map[string]kind{"computing": computing, "mixed": mixed, "blocking": blocking, "24 in flight": limitedTo24}

var seed = flag.Uint64("shed.seed", 1, "of the arrivals in tests of fairness")

// everyKind tests with servers that are short of different things.
func everyKind(t *testing.T, test func(t *testing.T, s *server, capacity float64)) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) { test(t, k.server(t, 1, *seed), k.capacity) })
	}
}

// One caller asks for ten times the capacity, and twenty others in the same class together
// for 60 % of it.
func TestGreedyCaller(t *testing.T) {
	everyKind(t, func(t *testing.T, s *server, capacity float64) {
		greedy, honest := &group{callers: 1, rate: 10}, &group{callers: 20, rate: 0.03}
		all := s.compete(capacity, 4*time.Second, greedy, honest)
		t.Logf("honest %.4f, greedy %.4f, in all %.3f of the capacity, p99 %v", honest.share(), greedy.share(), all/capacity, s.p99())
		if honest.share() < 0.98 {
			t.Errorf("%.4f of the honest requests served", honest.share())
		}
		if all < 0.9*capacity*left(10.6) {
			t.Errorf("%.3f of the capacity", all/capacity)
		}
	})
}

// Two callers ask for 10 and 5 times the capacity: neither gets much more than the other.
func TestTwoGreedyCallers(t *testing.T) {
	everyKind(t, func(t *testing.T, s *server, capacity float64) {
		a, b, honest := &group{callers: 1, rate: 8}, &group{callers: 1, rate: 2}, &group{callers: 20, rate: 0.03}
		all := s.compete(capacity, 4*time.Second, a, b, honest)
		t.Logf("honest %.4f, greedy %d and %d, in all %.3f", honest.share(), a.served, b.served, all/capacity)
		if honest.share() < 0.98 {
			t.Errorf("%.4f of the honest requests served", honest.share())
		}
		if float64(a.served) > 2*float64(b.served) || b.served > 2*a.served {
			t.Errorf("the greedy callers got %d and %d", a.served, b.served)
		}
	})
}

// A client with a new name in each request gets no more than eight callers.
func TestChangingNames(t *testing.T) {
	everyKind(t, func(t *testing.T, s *server, capacity float64) {
		honest := &group{callers: 20, rate: 0.03}
		greedy := &group{callers: 1, rate: 10, names: func() uint64 { return s.rand.Uint64() }}
		all := s.compete(capacity, 4*time.Second, greedy, honest)
		t.Logf("honest %.4f, greedy %.4f, in all %.3f", honest.share(), greedy.share(), all/capacity)
		if honest.share() < 0.95 {
			t.Errorf("%.4f of the honest requests served", honest.share())
		}
	})
}

// Many clients that each ask for little are served although one client asks for much.
func TestManyModestCallers(t *testing.T) {
	everyKind(t, func(t *testing.T, s *server, capacity float64) {
		greedy, honest := &group{callers: 1, rate: 10}, &group{callers: 5000, rate: 0.6 / 5000}
		all := s.compete(capacity, 4*time.Second, greedy, honest)
		t.Logf("honest %.4f, greedy %.4f, in all %.3f", honest.share(), greedy.share(), all/capacity)
		if honest.share() < 0.98 {
			t.Errorf("%.4f of the honest requests served", honest.share())
		}
	})
}

// Fifty clients share an address and ask for 60 % of the capacity next to a greedy caller: they
// count as one caller, and get about what the greedy one gets. Others lose nothing.
func TestSharedAddress(t *testing.T) {
	everyKind(t, func(t *testing.T, s *server, capacity float64) {
		greedy, shared, honest := &group{callers: 1, rate: 10}, &group{callers: 1, rate: 0.6}, &group{callers: 5, rate: 0.03}
		s.compete(capacity, 4*time.Second, greedy, shared, honest)
		t.Logf("honest %.4f, shared address %d, greedy %d", honest.share(), shared.served, greedy.served)
		if honest.share() < 0.98 {
			t.Errorf("%.4f of the honest requests served", honest.share())
		}
		if 3*shared.served < 2*greedy.served {
			t.Errorf("the shared address got %d, and the greedy caller %d", shared.served, greedy.served)
		}
	})
}

// All ask for the same, five times what can be served: nothing is lost, and all get the same.
func TestEqualCallers(t *testing.T) {
	everyKind(t, func(t *testing.T, s *server, capacity float64) {
		a, b := &group{callers: 10, rate: 0.25}, &group{callers: 10, rate: 0.25}
		all := s.compete(capacity, 5*time.Second, a, b)
		t.Logf("%d and %d, in all %.3f, p99 %v", a.served, b.served, all/capacity, s.p99())
		if all < 0.95*capacity*left(5) {
			t.Errorf("%.3f of the capacity", all/capacity)
		}
	})
}

// One caller asks in bursts, at the rate of all other callers together. While a limit is not known yet,
// the first of them delays the others.
func TestBursts(t *testing.T) {
	everyKind(t, func(t *testing.T, s *server, capacity float64) {
		greedy, honest := &group{callers: 1, rate: 0.6, burst: int(capacity)}, &group{callers: 20, rate: 0.03}
		all := s.compete(capacity, 30*time.Second, greedy, honest)
		t.Logf("honest %.4f, greedy %.4f, in all %.3f", honest.share(), greedy.share(), all/capacity)
		if honest.share() < 0.95 {
			t.Errorf("%.4f of the honest requests served", honest.share())
		}
	})
}

// Callers in a lower class take nothing from a greedy one in a higher class, however little
// they ask for.
func TestFairnessWithinAClass(t *testing.T) {
	everyKind(t, func(t *testing.T, s *server, capacity float64) {
		greedy := &group{callers: 1, rate: 0.6, class: spillway.CriticalPlus}
		modest := &group{callers: 200, rate: 0.05, class: spillway.Critical}
		s.compete(capacity, 4*time.Second, greedy, modest)
		t.Logf("the higher class %.4f, the lower %.4f", greedy.share(), modest.share())
		if greedy.share() < 0.99 {
			t.Errorf("%.4f of the higher class served", greedy.share())
		}
	})
}

// A million names neither allocate nor make a decision slower than a bounded search.
func TestManyNamesAllocateNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := limited(t, concurrency.Config{Fixed: true, MaxInFlight: 1})
	now, flow := t0, uint64(0)
	for range 1000 { // so that requests are rejected, and callers counted
		now = now.Add(time.Millisecond)
		s.Arrive(now, &spillway.Call{}, &idle, &shed.Waiter{})
	}
	if !s.TellsCallersApart() {
		t.Fatal("callers are not counted")
	}
	w := new(shed.Waiter)
	if n := testing.AllocsPerRun(1_000_000, func() {
		now = now.Add(time.Microsecond)
		flow += 0x9e3779b97f4a7c15
		w.Flow = flow
		if s.Reject(now, &spillway.Call{}, flow, &idle) == nil && s.Arrive(now, &spillway.Call{}, &idle, w).Verdict == shed.Wait {
			s.Withdraw(w)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a new name", n)
	}
}

// While callers are counted, an admission, a suspension and the end of a request allocate nothing.
func TestChargingAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := limited(t, concurrency.Config{Fixed: true, MaxInFlight: 1})
	now := t0
	filler := s.Arrive(now, &spillway.Call{}, &idle, nil)
	for range 1000 { // so that requests are rejected, and callers counted
		now = now.Add(time.Millisecond)
		s.Arrive(now, &spillway.Call{}, &idle, &shed.Waiter{})
	}
	filler.Ticket.Settle(now, spillway.OutcomeServed)
	for w, _ := s.Next(now, idle); w != nil; w, _ = s.Next(now, idle) {
		w.Ticket.Settle(now, spillway.OutcomeServed)
	}
	now = now.Add(500 * time.Millisecond)
	w := &shed.Waiter{Flow: 7}
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(time.Millisecond)
		d := s.Arrive(now, &spillway.Call{}, &idle, w)
		if d.Ticket.Account == 0 {
			t.Fatalf("%+v is not charged", d)
		}
		d.Ticket.Suspend(now)
		d.Ticket.Resume(now)
		d.Ticket.Settle(now, spillway.OutcomeServed)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
