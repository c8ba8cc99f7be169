package throttle_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/throttle"
)

// A backend rejects everything. After ten calls the throttle has seen enough.
func Example() {
	th, err := throttle.New(throttle.Config{Rand: func() float64 { return 0.5 }})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	rejected := 0
	for range 100 {
		ticket, err := th.Admit(now, spillway.Call{Key: "users"})
		if errors.Is(err, spillway.ErrRejected) {
			rejected++
			continue
		}
		// Send the call, and settle its outcome.
		ticket.Settle(now, spillway.OutcomeOverloaded)
	}
	fmt.Println("sent", 100-rejected)
	// Output: sent 10
}
