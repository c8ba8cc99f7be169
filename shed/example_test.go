package shed_test

import (
	"fmt"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/shed"
)

// The executor is busy with requests that wait in a full queue when a critical one
// arrives. A sheddable one makes place for it, and it is the first to run.
func Example() {
	s, err := shed.New(shed.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	busy := shed.State{Runnable: 3, Processors: 1}
	arrive := func(c spillway.Criticality) shed.Decision {
		return s.Arrive(now, &spillway.Call{Criticality: c}, &busy, &shed.Waiter{Owner: c})
	}
	full := false
	for !full {
		full = arrive(spillway.Sheddable).Verdict == shed.Rejected
	}
	d := arrive(spillway.Critical)
	fmt.Println(d.Verdict == shed.Wait, d.Evicted.Owner, d.Evicted.Err)

	// Two milliseconds later the run queue is empty.
	now = now.Add(2 * time.Millisecond)
	if w, _ := s.Next(now, shed.State{Processors: 1}); w != nil {
		fmt.Println(w.Owner, "runs")
		w.Ticket.Settle(now.Add(time.Millisecond), spillway.OutcomeServed)
	}
	// Output:
	// true SHEDDABLE spillway: rejected locally by shed at 1000 of 1000 requests in the waiting queue: the waiting queue is full of requests that are no less critical
	// CRITICAL runs
}
