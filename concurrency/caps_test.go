package concurrency

import (
	"fmt"
	"testing"

	"github.com/seed90641741/spillway"
)

// generation returns caps of 1 for n keys that only this generation has.
func generation(g, n int) map[string]int {
	caps := make(map[string]int, n)
	for i := range n {
		caps[fmt.Sprint(g, "/", i)] = 1
	}
	return caps
}

// Keys that leave MaxInFlightByKey give up their places to new ones, unless they have requests in flight.
func TestPlacesOfCapsThatLeft(t *testing.T) {
	l := must(t, Config{MaxKeys: 3, MaxInFlightByKey: generation(0, 10)})
	held := l.Enter(at(0), call("0/7"))
	for i := range 3 {
		l.Enter(at(0), call(fmt.Sprint("own ", i))) // these never leave
	}
	for g := 1; g < 50; g++ {
		if err := l.Update(Config{MaxKeys: 3, MaxInFlightByKey: generation(g, 10)}); err != nil {
			t.Fatal(err)
		}
		ticket, err := l.Admit(at(0), call(fmt.Sprint(g, "/3")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Admit(at(0), call(fmt.Sprint(g, "/3"))); err == nil {
			t.Errorf("generation %d: the cap of a key is ignored", g)
		}
		ticket.Settle(at(0), spillway.OutcomeServed)
	}
	if n := len(l.Stats(at(0)).Keys); n != 1+3+10+1 || len(l.index) != n-1 {
		t.Errorf("%d places and %d names, want 15 and 14", n, len(l.index))
	}
	held.Settle(at(0), spillway.OutcomeServed)
	if working, parked := l.Working(); working != 3 || parked != 0 {
		t.Errorf("%d at work, %d parked", working, parked)
	}
}

// More keys than fit into 16 bits, each with a request in flight: a request ends where it began.
func TestVeryManyPlaces(t *testing.T) {
	l := must(t, Config{})
	var tickets []spillway.Ticket
	for g := range 18 {
		caps := generation(g, mostKeys)
		if err := l.Update(Config{MaxInFlightByKey: caps}); err != nil {
			t.Fatal(err)
		}
		for name := range caps {
			tickets = append(tickets, l.Enter(at(0), call(name)))
		}
	}
	for i := range tickets {
		tickets[i].Settle(at(1), spillway.OutcomeServed)
	}
	for _, k := range l.Stats(at(1)).Keys {
		if k.InFlight != 0 {
			t.Fatalf("%q has %d in flight after all have ended", k.Key, k.InFlight)
		}
	}
}
