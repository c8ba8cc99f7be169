package main

import (
	"testing"
)

// Where half of the clients leave a queue soon, the capacity is used for the others, whatever was rejected at first.
func TestHalfLeave(t *testing.T) {
	long(t)
	sc := prefixed(scenarios, "S9")[0]
	for seed := range uint64(10) {
		const capacity = 400 * 20
		r := simulate(sc, seed, newOurs)
		if r.Good < capacity*94/100 {
			t.Errorf("seed %d: %d answered in time of %d", seed, r.Good, capacity)
		}
	}
}
