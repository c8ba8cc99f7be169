package tune_test

import (
	"fmt"
	"time"

	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/tune"
)

// A rate limit of 1000 follows a backend that should answer within 50 ms. Four
// times a second a program reads its signals; here it loses half of its capacity.
func Example() {
	limiter, err := ratelimit.New(ratelimit.Config{Rate: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	tuner, err := tune.New(tune.Config{
		Limit:   1000,
		Signals: []tune.Signal{{Name: "latency", Unit: "ms", Target: 50}},
		Enforce: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	for _, seen := range []struct{ answered, latency float64 }{{990, 47}, {520, 300}, {500, 700}, {510, 800}, {500, 700}} {
		now = now.Add(250 * time.Millisecond)
		move, ok := tuner.Read(now, seen.answered, seen.latency)
		if !ok {
			continue
		}
		fmt.Println(move)
		if err := limiter.Update(ratelimit.Config{Rate: move.To}); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 1000 to 700 (aimd): latency is 700 ms, for 250ms above the target of 50 ms; 670 of 1000 are used
	// 700 to 490 (aimd): latency is 700 ms, for 250ms above the target of 50 ms; 505 of 700 are used
}
