package shed_test

import (
	"fmt"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/shed"
)

// The executor is busy when a critical request and a sheddable one arrive. Both
// wait; the critical one runs first.
func Example() {
	s, err := shed.New(shed.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	busy := shed.State{Runnable: 3, Processors: 1}
	for _, c := range []spillway.Criticality{spillway.Sheddable, spillway.Critical} {
		w := &shed.Waiter{Owner: c.String()}
		if s.Arrive(now, spillway.Call{Criticality: c}, busy, w).Verdict == shed.Wait {
			fmt.Println(c, "waits")
		}
	}

	// Two milliseconds later the run queue is empty.
	now = now.Add(2 * time.Millisecond)
	if w, _ := s.Next(now, shed.State{Processors: 1}); w != nil {
		fmt.Println(w.Owner, "runs")
		w.Ticket.Settle(now.Add(time.Millisecond), spillway.Served)
	}
	// Output:
	// SHEDDABLE waits
	// CRITICAL waits
	// CRITICAL runs
}
