package throttle_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/throttle"
)

// A backend refuses everything. After ten calls the throttle has seen enough.
func Example() {
	th, err := throttle.New(throttle.Config{Rand: func() float64 { return 0.5 }})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	refused := 0
	for range 100 {
		ticket, err := th.Admit(now, spillway.Call{Key: "users"})
		if errors.Is(err, spillway.ErrRejected) {
			refused++
			continue
		}
		// Send the call, and settle its outcome.
		ticket.Settle(now, spillway.OutcomeOverloaded)
	}
	fmt.Println("sent", 100-refused)
	// Output: sent 10
}
