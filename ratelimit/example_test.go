package ratelimit_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
)

func Example() {
	l, err := ratelimit.New(ratelimit.Config{
		Rate:   2,
		Exempt: ratelimit.Exempt{Identities: []string{"monitoring"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	for _, who := range []string{"shop", "shop", "shop", "monitoring"} {
		if l.Exempt(ratelimit.Caller{Identity: who}) {
			fmt.Println(who, "is exempt")
			continue
		}
		_, err := l.Admit(now, spillway.Call{Customer: who})
		fmt.Println(who, "is rejected:", errors.Is(err, spillway.ErrRejected))
	}
	// Output:
	// shop is rejected: false
	// shop is rejected: false
	// shop is rejected: true
	// monitoring is exempt
}

// A caller that may wait takes a place in the queue. Here two arrive when there
// is one token: the second is let in half a second later.
func ExampleLimiter_Reserve() {
	l, err := ratelimit.New(ratelimit.Config{Rate: 2, BurstSeconds: 0.5, QueueDepth: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	first, _ := l.Reserve(now)
	second, _ := l.Reserve(now)
	fmt.Println(first.Wait, second.Wait)

	// Wait for a timer of second.Wait or for the caller to leave, then:
	now = now.Add(second.Wait)
	fmt.Println(second.End(now))
	// Output:
	// 0s 500ms
	// true
}
