//go:build !race

// A simulation runs on one goroutine: there is nothing for the race detector to find.

package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/sim"
	"github.com/seed90641741/spillway/throttle"
)

// How many requests does a backend with a capacity of 200 per second receive, when 100 clients
// try to make ten times as many calls?
func Example() {
	for _, k := range []float64{2, 1.1} {
		s, err := sim.New(sim.Config{
			Seed:     1,
			Duration: 90 * time.Second,
			Windows:  []sim.Window{{Name: "steady", From: 60 * time.Second}},
			Clients: []sim.Clients{{
				Name: "web", Count: 20, Rate: 2000, Deadline: time.Second,
				Call: sim.Edge{
					To:      "backend",
					Latency: sim.Constant(time.Millisecond),
					Egress:  egress.Config{Throttle: throttle.Config{K: k}},
				},
			}},
			Services: []sim.Service{{Name: "backend", CPU: sim.Exponential(5 * time.Millisecond), Queue: 20}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		result, err := s.Run(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		steady := result.Services[0].Windows[0]
		fmt.Printf("K = %.1f: it receives %.1f times what it can do, and serves %.1f\n", k, steady.LoadRatio, steady.GoodputRatio)
	}
	// Output:
	// K = 2.0: it receives 2.0 times what it can do, and serves 1.0
	// K = 1.1: it receives 1.1 times what it can do, and serves 1.0
}
