package inflight_test

import (
	"fmt"
	"log"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
)

func Example() {
	limiter, err := inflight.New(inflight.Config{MaxInFlight: 1})
	if err != nil {
		log.Fatal(err)
	}

	ticket, _ := limiter.Admit(time.Now(), spillway.Call{})
	_, err = limiter.Admit(time.Now(), spillway.Call{})
	fmt.Println(err)

	ticket.Settle(time.Now(), spillway.OutcomeServed)
	fmt.Println(limiter.Stats(time.Time{}).InFlight)
	// Output:
	// spillway: rejected locally by inflight at 1 of 1 requests in flight: the backend has not answered what was sent before; send less, or raise MaxInFlight (xDS: max_requests) if it can do more
	// 0
}

func ExampleRegistry() {
	var registry inflight.Registry // one for the process
	orders := inflight.Key{Cluster: "orders"}

	channel1, release1 := registry.Share(orders)
	channel2, release2 := registry.Share(orders)
	defer release1()
	defer release2()

	channel1.SetMaxInFlight(2) // from the control plane
	fmt.Println(channel1.TryAcquire(), channel2.TryAcquire(), channel1.TryAcquire())
	// Output: true true false
}
