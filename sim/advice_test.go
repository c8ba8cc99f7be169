//go:build !race

// A simulation runs on one goroutine: there is nothing for the race detector to find.

package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/sim"
)

// rare is 10,000 clients of one call a minute each of a service of four tasks.
func rare(told bool, faults ...sim.Fault) sim.Config {
	return sim.Config{
		Seed: 1, Duration: 20 * time.Minute,
		Windows: []sim.Window{{Name: "steady", From: 10 * time.Minute}},
		Clients: []sim.Clients{{
			Name: "web", Count: 10000, Rate: 166.7, Deadline: 2 * time.Second,
			Call: sim.Edge{To: "db", Latency: sim.Constant(time.Millisecond)},
		}},
		Services: []sim.Service{{Name: "db", Tasks: 4, CPU: sim.Exponential(17 * time.Millisecond), Ingress: new(ingress.Config), AcceptRatio: told}},
		Faults:   faults,
	}
}

// One task of four that is overloaded tells its clients so. They must not be
// throttled for it: the others have capacity.
func TestRatioOfOneTaskThrottlesNobody(t *testing.T) {
	slow := sim.Fault{Kind: sim.Slow, Service: "db", Tasks: 1, Factor: 4}
	var success [2]float64
	for i, told := range []bool{false, true} {
		s, err := sim.New(rare(told, slow))
		if err != nil {
			t.Fatal(err)
		}
		result, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := result.Clients[0].Windows[0]
		success[i] = float64(r.Good) / float64(r.Offered)
		if told && r.RejectedThrottle > r.Offered/200 {
			t.Errorf("the throttle rejected %d of %d calls", r.RejectedThrottle, r.Offered)
		}
	}
	if success[1] < success[0]-0.005 {
		t.Errorf("success is %.4f, without the ratio %.4f", success[1], success[0])
	}
}

// TestSparseClientsOfARateLimit: clients of a call per second or less each, of a service that is limited to 10 of 60 calls per
// second. Each of them knows too little to send less; told of the accept ratio, they do.
func TestSparseClientsOfARateLimit(t *testing.T) {
	for _, row := range []struct {
		clients     int
		told        bool
		from, to    time.Duration
		least, most float64 // sent for each that is accepted
	}{
		{60, true, time.Minute, 5 * time.Minute, 2, 3.2},
		{250, false, 20 * time.Second, time.Minute, 5, 8},
		{250, true, 20 * time.Second, time.Minute, 2, 4.4},
	} {
		s, err := sim.New(sim.Config{
			Seed: 1, Duration: row.to,
			Windows: []sim.Window{{Name: "steady", From: row.from}},
			Clients: []sim.Clients{{
				Name: "web", Count: row.clients, Rate: 60, Deadline: 2 * time.Second,
				Call: sim.Edge{To: "db", Latency: sim.Constant(time.Millisecond)},
			}},
			Services: []sim.Service{{
				Name: "db", Tasks: 1, CPU: sim.Constant(time.Millisecond), AcceptRatio: row.told,
				Ingress: &ingress.Config{RateLimit: ratelimit.Config{Rate: 10}},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		result, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := result.Clients[0].Windows[0]
		if sent := float64(r.Attempts) / float64(r.Good); sent < row.least || sent > row.most || float64(r.Good) < 9.8*(row.to-row.from).Seconds() {
			t.Errorf("%+v: %.2f sent for each of %d accepted", row, sent, r.Good)
		}
	}
}

func TestAcceptRatioNeedsAnIngress(t *testing.T) {
	c := rare(true)
	c.Services[0].Ingress = nil
	if _, err := sim.New(c); err == nil || !strings.Contains(err.Error(), "Services[0].AcceptRatio is true, must be false where there is no Ingress") {
		t.Errorf("New returns %v", err)
	}
}
