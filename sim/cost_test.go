package sim

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/quota"
)

// A customer whose calls are 10 times as expensive uses 10 times its share of two tasks if quotas
// count requests, and its share if they learn the cost. The other customer notices neither.
func TestLearnedCosts(t *testing.T) {
	race.SkipOneGoroutine(t)
	use := func(learn bool) (expensive, cheap float64) {
		limit := quota.Limit{Rate: 50} // ms per second and task
		s, err := New(Config{
			Seed: 1, Duration: 2 * time.Minute,
			Windows: []Window{{Name: "known", From: time.Minute}},
			Clients: []Clients{
				{Name: "expensive", Rate: 200, Customer: "expensive", CPUFactor: 10, Call: Edge{To: "api", Egress: noThrottle()}},
				{Name: "cheap", Rate: 80, Customer: "cheap", Call: Edge{To: "api"}},
			},
			Services: []Service{{
				Name: "api", Tasks: 2, Processors: 2, CPU: Exponential(time.Millisecond),
				Ingress:    &ingress.Config{},
				Customers:  &quota.LocalConfig{Customers: map[string]quota.Limit{"expensive": limit, "cheap": limit}},
				LearnCosts: learn,
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		result, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return result.Clients[0].Windows[0].GoodputRPS * 10, result.Clients[1].Windows[0].Success
	}
	for _, row := range []struct {
		learn      bool
		least, max float64 // ms per second
	}{{false, 850, 1050}, {true, 75, 135}} {
		expensive, cheap := use(row.learn)
		t.Logf("learn %v: the expensive customer uses %.0f ms/s of 100; %.1f %% of the cheap calls are served", row.learn, expensive, 100*cheap)
		if expensive < row.least || expensive > row.max || cheap < 0.98 {
			t.Errorf("learn %v: want %v to %v ms/s, and all cheap calls", row.learn, row.least, row.max)
		}
	}
}

// noThrottle is that of a client that sends all of its calls.
func noThrottle() (c egress.Config) {
	c.ThrottleMode = spillway.ModeOff
	return c
}
