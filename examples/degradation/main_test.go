package main

import (
	"context"
	"fmt"

	"github.com/seed90641741/spillway"
)

func Example_search() {
	for level := range spillway.DegradationLevel(spillway.DegradationLevels) {
		fmt.Printf("degradation %v\n", level)
		for _, line := range search(spillway.WithDegradation(context.Background(), level), "overload") {
			fmt.Println("  " + line)
		}
	}
	// Output:
	// degradation none
	//   Overload: Under overload a server rejects calls.
	//   Queues: A queue that grows without a bound turns an overload into an outage.
	//   Retries: Each retry is more load, and an overload needs less.
	// degradation low
	//   Queues: A queue that grows without a bound turns an overload into an outage.
	//   Overload: Under overload a server rejects calls.
	//   Retries: Each retry is more load, and an overload needs less.
	// degradation medium
	//   Queues
	//   Overload
	//   Retries
	// degradation high
	//   Queues
}
