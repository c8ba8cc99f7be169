package concurrency_test

import (
	"fmt"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
)

// A limit around a database pool: Admit before the query, Settle after it.
func ExampleLimiter() {
	limiter, err := concurrency.New(concurrency.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	query := func(now time.Time) (spillway.Ticket, error) {
		return limiter.Admit(now, spillway.Call{Key: "orders"})
	}

	now := time.Unix(0, 0)
	ticket, err := query(now)
	if err != nil {
		fmt.Println("rejected:", err)
		return
	}
	// Run the query here.
	now = now.Add(10 * time.Millisecond)
	ticket.Settle(now, spillway.OutcomeServed)

	key := limiter.Stats(now).Keys[1]
	fmt.Println(key.Key, key.State, key.InFlight, "in flight")
	// Output: orders open 0 in flight
}
