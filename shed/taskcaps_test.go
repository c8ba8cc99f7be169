package shed_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/shed"
)

// At a cap by key, requests of a class run by the progress of their tasks and their arrival.
func TestCapKeepsTasksWhole(t *testing.T) {
	s := limited(t, concurrency.Config{MaxInFlightByKey: map[string]int{"capped": 1}})
	arrive := func(ms float64, p spillway.Progress, l spillway.Level, name string) shed.Decision {
		call := spillway.Call{Key: "capped", Criticality: spillway.Critical, Progress: p, Level: l}
		return s.Arrive(at(ms), &call, &idle, &shed.Waiter{Owner: name})
	}
	running := arrive(0, 0, 1, "first").Ticket
	for i := range 12 {
		arrive(1, []spillway.Progress{0, 9, 1}[i%3], spillway.Level(1+i), fmt.Sprint(i))
	}
	var order []string
	for now := 2.0; s.Waiting() > 0; now++ {
		running.Settle(at(now), spillway.OutcomeServed)
		w, _ := s.Next(at(now), idle)
		if w == nil || w.Err != nil {
			t.Fatalf("after %v: none runs, or is rejected", order)
		}
		running = w.Ticket
		order = append(order, w.Owner.(string))
	}
	running.Settle(at(50), spillway.OutcomeServed)
	if want := []string{"1", "4", "7", "10", "2", "5", "8", "11", "0", "3", "6", "9"}; !slices.Equal(order, want) {
		t.Errorf("ran in the order %v, want %v", order, want)
	}
}
