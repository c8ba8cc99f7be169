package attempts_test

import (
	"fmt"
	"time"

	"github.com/seed90641741/spillway/attempts"
)

// Half of what arrives are retries: other tasks reject as well.
func Example() {
	h, err := attempts.New(attempts.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	for range 100 {
		h.Observe(now, 0) // each request, by the number it says it has
		h.Observe(now, 1)
	}
	answer := "overloaded"
	if h.DontRetry(now) {
		answer += "; don't retry"
	}
	fmt.Println(answer)
	// Output: overloaded; don't retry
}

// Claims of an untrusted client count against itself.
func ExampleCustomers() {
	c, err := attempts.NewCustomers(attempts.Config{}, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	for range 100 {
		c.Observe(now, "stranger", 1_000_000_000)
		c.Observe(now, "customer", 0)
	}
	fmt.Println(c.DontRetry(now, "stranger"), c.DontRetry(now, "customer"))
	// Output: true false
}
