package quota_test

import (
	"fmt"
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

// Mail and calendar share a thousand calls per second, two to one. Anybody else
// may have ten.
func Example() {
	local, err := quota.NewLocal(quota.LocalConfig{
		Capacity:     1000,
		Customers:    map[string]quota.Limit{"mail": {Weight: 2}, "calendar": {Weight: 1}},
		DefaultLimit: quota.Limit{Rate: 10},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	q, err := quota.New(quota.Config{Allocator: local})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	admitted := 0
	for range 100 {
		ticket, err := q.Admit(now, spillway.Call{Customer: "unlisted", Criticality: spillway.CriticalPlus})
		if err != nil {
			continue
		}
		admitted++
		ticket.Settle(now, spillway.OutcomeServed)
	}
	fmt.Println("admitted", admitted)
	// Output: admitted 10
}

// When a customer runs out, what matters less is rejected first.
func ExampleQuota_Admit() {
	local, err := quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 100}})
	if err != nil {
		fmt.Println(err)
		return
	}
	q, err := quota.New(quota.Config{Allocator: local})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	classes := []spillway.Criticality{spillway.Sheddable, spillway.SheddablePlus, spillway.Critical, spillway.CriticalPlus}
	admitted := map[spillway.Criticality]int{}
	for i := range 120 { // 30 of each class, in turn
		class := classes[i%4]
		if _, err := q.Admit(now, spillway.Call{Customer: "mail", Criticality: class}); err == nil {
			admitted[class]++
		}
	}
	for _, class := range classes {
		fmt.Println(class, admitted[class])
	}
	// Output:
	// SHEDDABLE 7
	// SHEDDABLE_PLUS 15
	// CRITICAL 27
	// CRITICAL_PLUS 30
}

// Quotas in CPU-seconds: calls are admitted for nothing, and charged when it is
// known what they took.
func ExampleQuota_Charge() {
	local, err := quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 0.5}})
	if err != nil {
		fmt.Println(err)
		return
	}
	q, err := quota.New(quota.Config{Allocator: local, Cost: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	ticket, err := q.Admit(now, spillway.Call{Customer: "mail"})
	if err != nil {
		fmt.Println(err)
		return
	}
	q.Charge(now, &ticket, 2) // CPU-seconds
	ticket.Settle(now, spillway.OutcomeServed)

	_, err = q.Admit(now.Add(3*time.Second), spillway.Call{Customer: "mail"})
	fmt.Println("after 3 s rejected:", err != nil)
	_, err = q.Admit(now.Add(4*time.Second), spillway.Call{Customer: "mail"})
	fmt.Println("after 4 s rejected:", err != nil)
	// Output:
	// after 3 s rejected: true
	// after 4 s rejected: false
}

// leases is an Allocator that gets its grants from somewhere else; here they just
// stand in a map.
type leases map[string]quota.Grant

func (l leases) Known(customer string) bool { _, ok := l[customer]; return ok }

func (l leases) Lease(now time.Time, d quota.Demand) quota.Grant {
	g, ok := l[d.Customer]
	if !ok {
		g.Rate = 1 // what is safe
	}
	g.Until = now.Add(time.Second)
	return g
}

func ExampleAllocator() {
	q, err := quota.New(quota.Config{Allocator: leases{"mail": {Rate: math.Inf(1)}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	admitted := map[string]int{}
	for range 10 {
		for _, customer := range []string{"mail", "unlisted"} {
			if _, err := q.Admit(time.Now(), spillway.Call{Customer: customer}); err == nil {
				admitted[customer]++
			}
		}
	}
	fmt.Println(admitted)
	// Output: map[mail:10 unlisted:1]
}
