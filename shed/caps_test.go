package shed_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/shed"
)

// Requests of a key with a cap of 24 places ask for five times that, all classes alike. The highest
// class gets all that fits, and the lowest nothing. Requests of another key lose nothing.
func TestCapByKeyHandsOutPlacesByClass(t *testing.T) {
	k := kind{handler: []phase{{sleep: 20 * ms}}, limit: concurrency.Config{MaxInFlightByKey: map[string]int{"capped": 24}}}
	s := k.server(t, 1, *seed)
	const capacity = 24 / 0.02
	groups := []*group{{callers: 1, rate: 0.2, key: "quick"}}
	for c := range spillway.Criticalities {
		class := spillway.Sheddable + spillway.Criticality(c)
		groups = append(groups, &group{callers: 20, rate: 5.0 / 4 / 20, class: class, key: "capped"})
	}
	s.compete(capacity, 4*time.Second, groups...)
	quick, lowest, highest := groups[0], groups[1], groups[4]
	fits := float64(highest.served) / 4 / capacity
	t.Logf("quick %.4f, highest class %.4f of the cap, lowest %.4f", quick.share(), fits, lowest.share())
	if quick.share() < 1 {
		t.Errorf("%.4f of the requests of another key served", quick.share())
	}
	if fits < 0.99 || lowest.served > 0 {
		t.Errorf("%.4f of the cap for the highest class, and %d requests of the lowest class", fits, lowest.served)
	}
}

// When the overload of a key with a cap is over, every class is served.
func TestCapAfterOverload(t *testing.T) {
	k := kind{handler: []phase{{sleep: 20 * ms}}, limit: concurrency.Config{MaxInFlightByKey: map[string]int{"capped": 24}}}
	s := k.server(t, 1, *seed)
	const capacity = 24 / 0.02
	for _, load := range []float64{5, 0.5} {
		var groups []*group
		for c := range spillway.Criticalities {
			class := spillway.Sheddable + spillway.Criticality(c)
			groups = append(groups, &group{callers: 20, rate: load / 4 / 20, class: class, key: "capped"})
		}
		s.compete(capacity, 2*time.Second, groups...)
		for c, g := range groups {
			t.Logf("load %g, class %d: %.4f of %d", load, c, g.share(), g.offered)
			if load < 1 && g.share() < 1 {
				t.Errorf("load %g: %.4f of the requests of class %d served", load, g.share(), c)
			}
		}
	}
}

// Streams with a cap leave quick calls alone, and the cap is not exceeded.
func TestCapOfStreams(t *testing.T) {
	k := kind{handler: []phase{{sleep: 5 * ms}}, limit: concurrency.Config{MaxInFlightByKey: map[string]int{"streams": 10}}}
	s := k.server(t, 1, *seed)
	s.deadline = time.Minute
	streams := &group{callers: 50, rate: 0.2, key: "streams", handler: func() []phase { return []phase{{sleep: 5 * time.Second}} }}
	quick := &group{callers: 5, rate: 100}
	s.compete(1, 20*time.Second, streams, quick)
	t.Logf("%d of %d streams, %.4f of the quick calls served", streams.served, streams.offered, quick.share())
	if quick.share() < 1 {
		t.Errorf("%.4f of the quick calls served", quick.share())
	}
	if most := 10 * (20 + 5) / 5; streams.served > most || streams.served < 20 {
		t.Errorf("%d streams served, at most %d fit", streams.served, most)
	}
}

// That requests had to wait for a cap is forgotten, also if nothing asks for its queue any more because the cap is not reached. Otherwise
// there would be no calm again, and every request of the process would be examined.
func TestCalmAfterACapWasReached(t *testing.T) {
	s := limited(t, concurrency.Config{MaxInFlightByKey: map[string]int{"streams": 1}})
	d, _ := arriveKey(s, at(0), "streams", spillway.Critical, idle)
	arriveKey(s, at(1), "streams", spillway.Critical, idle)
	arriveKey(s, at(20), "streams", spillway.Critical, idle)
	d.Ticket.Settle(at(30), spillway.OutcomeServed)
	for range 2 {
		w, _ := s.Next(at(30), idle)
		if w == nil {
			t.Fatal("no stream waits")
		}
		w.Ticket.Settle(at(30), spillway.OutcomeServed)
	}
	passed := false
	for second := 1.0; second <= 60; second++ {
		var ticket spillway.Ticket
		now, call, state := at(1000*second), spillway.Call{Key: "quick"}, idle
		if passed = s.Pass(now, &call, &state, &ticket); !passed {
			ticket = s.Arrive(now, &call, &state, new(shed.Waiter)).Ticket
		}
		ticket.Settle(now, spillway.OutcomeServed)
	}
	if !passed {
		t.Error("no calm a minute after two streams waited for 30 ms")
	}
}

// A cap that is reached for the first time has not been reached since the start: a burst of streams may wait.
func TestFirstBurstAtACap(t *testing.T) {
	s := limited(t, concurrency.Config{MaxInFlightByKey: map[string]int{"streams": 1}})
	arriveKey(s, at(0), "streams", spillway.Critical, idle)
	arriveKey(s, at(60_000), "quick", spillway.Critical, busy) // waits, so that there is no calm
	for i := range 100 {
		if d, _ := arriveKey(s, at(60_001), "streams", spillway.Critical, idle); d.Verdict != shed.Wait {
			t.Fatalf("stream %d: %v: %v", i, d.Verdict, d.Err)
		}
	}
}
