package cost

import (
	"math"
	"strconv"
	"testing"
	"time"
)

// unlisted returns a call of a customer that is not known by name.
func unlisted(customer string) Call { return Call{Customer: customer} }

// The first calls of a customer are measured, and one in eight afterwards. Each other one costs the mean of the
// customer's own.
func TestMeasured(t *testing.T) {
	random := 0.
	w := newWorld(t, 1, Config{Rand: func() float64 { random += 1. / 16; return math.Mod(random, 1) }})
	measured := 0
	for i := range 16 + leastMeasured {
		a, cost, known := w.Begin(t0, unlisted("a"))
		if b, _, known := w.Begin(t0, unlisted("b")); known || !b.Measure() {
			t.Fatalf("call %d of another customer: known %v, measure %v", i, known, b.Measure())
		}
		if want := i > 0; known != want || want && math.Abs(cost-3) > 1e-9 {
			t.Errorf("call %d costs %v, known: %v; want 3", i, cost, known)
		}
		if a.Measure() {
			measured++
			if got := w.Measured(a, 3*time.Millisecond); math.Abs(got-3) > 1e-9 {
				t.Errorf("3ms cost %v", got)
			}
		}
		w.Done(t0, a)
	}
	if measured != leastMeasured+2 {
		t.Errorf("%d calls are measured, want 4, and 2 of 16", measured)
	}
	for range 100 { // it has become expensive
		a, _, _ := w.Begin(t0, unlisted("a"))
		w.Measured(a, 60*time.Millisecond)
	}
	if _, cost, _ := w.Begin(t0, unlisted("a")); cost < 59 {
		t.Errorf("calls of 60ms cost %v", cost)
	}
}

// A customer that lost its account starts again, and what its last call was measured to use goes to no other account. A
// customer that calls keeps its account.
func TestAccountsAreBounded(t *testing.T) {
	w := newWorld(t, 1, Config{})
	old, _, _ := w.Begin(t0, unlisted("old"))
	for i := range 100_000 {
		w.Begin(t0, unlisted(strconv.Itoa(i)))
		if i%1000 == 0 {
			a, _, known := w.Begin(t0, unlisted("stays"))
			if i > 0 && !known {
				t.Fatalf("after %d names the cost of a customer that calls is forgotten", i)
			}
			w.Measured(a, time.Millisecond)
		}
	}
	if n := len(w.accounts.all); n != maxAccounts || len(w.accounts.places) != n {
		t.Errorf("%d accounts of %d names, want %d", n, len(w.accounts.places), maxAccounts)
	}
	w.Measured(old, time.Second)
	w.Measured(Ticket{}, time.Second)
	for i := range w.accounts.all {
		if x := &w.accounts.all[i]; x.mean > 2 {
			t.Errorf("an account has the mean %v of a customer that lost it", x.mean)
		}
	}
	if _, cost, _ := w.Begin(t0, unlisted("stays")); math.Abs(cost-1) > 1e-9 {
		t.Errorf("the customer that calls costs %v, want 1", cost)
	}
}

// Customers that are not known by name get half of the places, after some calls, and lose them after a minute
// without any. Known ones get the others at once.
func TestLentPlaces(t *testing.T) {
	w := newWorld(t, 1, Config{MaxKeys: 4})
	at := func(now time.Duration, c Call) uint32 {
		a, _, _ := w.Begin(t0.Add(now), c)
		w.Done(t0.Add(now), a)
		return a.place
	}
	for _, name := range []string{"a", "b", "c", ""} {
		for i := range leastCalls {
			if place := at(0, unlisted(name)); i < leastCalls-1 && place != shared {
				t.Fatalf("call %d of %s has place %d", i, name, place)
			}
		}
	}
	for name, want := range map[string]uint32{"a": named, "b": named + 1, "c": shared, "": shared} {
		if place := at(0, unlisted(name)); place != want {
			t.Errorf("%q has place %d, want %d", name, place, want)
		}
	}
	for i, name := range []string{"known", "too", "many"} {
		if place, want := at(0, known(name)), []uint32{named + 2, named + 3, shared}[i]; place != want {
			t.Errorf("%s has place %d, want %d", name, place, want)
		}
	}
	at(50*time.Second, unlisted("b"))
	if place := at(time.Minute, known("many")); place != named { // that of a
		t.Errorf("a known customer has place %d after a minute, want that of one that left", place)
	}
	if place := at(time.Minute, unlisted("a")); place != shared {
		t.Errorf("a has place %d, though it is taken", place)
	}
}

// A route and a customer of the same name are two keys.
func TestNamesOfRoutes(t *testing.T) {
	w := newWorld(t, 1, Config{})
	route, _, _ := w.Begin(t0, Call{Customer: "a", Known: true, Route: "/"})
	customer, _, _ := w.Begin(t0, known("/"))
	if route.place == customer.place || route.place == shared || customer.place == shared {
		t.Errorf("places %d and %d", route.place, customer.place)
	}
}
