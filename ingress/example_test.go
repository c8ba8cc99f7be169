package ingress_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
)

// Each customer may make two calls a second.
func Example() {
	limits, err := quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := ingress.New(ingress.Config{Quota: quota.Config{Allocator: limits}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	handle := func(customer string) {
		// What the request says of itself is believed as far as this listener goes.
		call := spillway.Call{Key: "/search", Customer: customer}
		call = server.Trust().Judge(time.Now(), call, ingress.Claims{Criticality: spillway.CriticalPlus, Labelled: true})
		slot, rejection := server.Enter(context.Background(), call, ratelimit.Caller{})
		if rejection.Rejected() {
			fmt.Println(customer, "is rejected:", rejection.Outcome)
			return
		}
		defer slot.Done(spillway.OutcomeServed)
		fmt.Println(customer, "is served as", slot.Call().Criticality)
	}
	for range 3 {
		handle("alice")
	}
	handle("bob")
	// Output:
	// alice is served as CRITICAL
	// alice is served as CRITICAL
	// alice is rejected: over quota
	// bob is served as CRITICAL
}
