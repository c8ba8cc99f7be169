package budget_test

import (
	"fmt"
	"time"

	"github.com/seed90641741/spillway/budget"
)

// Ten originals earn one retry.
func ExampleBucket() {
	b, err := budget.New(budget.Config{Capacity: 100, Empty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 10 {
		b.Deposit("", 0.1)
	}
	now := time.Now()
	_, _, first := b.Withdraw(now, "", 1)
	left, capacity, second := b.Withdraw(now, "", 1)
	fmt.Println(first, second)
	fmt.Printf("%v of %v tokens left\n", left, capacity)
	// Output:
	// true false
	// 0 of 100 tokens left
}

// A backend that is down uses up its own retries only.
func ExampleEndpoints() {
	b, err := budget.NewEndpoints(budget.EndpointsConfig{Bucket: budget.Config{Capacity: 10}})
	if err != nil {
		fmt.Println(err)
		return
	}
	now, retries := time.Now(), 0
	for range 100 {
		if _, _, ok := b.Withdraw(now, "down:443", 1); ok {
			retries++
		}
	}
	fmt.Println("down:", retries, "retries")
	fmt.Println("up:", b.Bucket("up:443").Stats(now).Tokens, "tokens")
	// Output:
	// down: 10 retries
	// up: 10 tokens
}
