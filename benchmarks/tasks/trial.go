package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/sim"
)

// The back service has 4 tasks, each with 4 processors or slots, and a call takes 10 ms of one in the mean.
const (
	tasks    = 4
	each     = 4
	work     = 10 * time.Millisecond
	capacity = tasks * each * float64(time.Second) / float64(work) // calls per second
)

// A trial is a cell of the table.
type trial struct {
	calls   int     // of a task
	load    float64 // in times of the capacity
	kind    string  // cpu or pool
	atOnce  bool
	stay    bool // servers do not notice that a caller has left
	seconds int
	seed    uint64
}

// share returns how many tasks were served in time, of those that the back service could serve.
func (t *trial) share(ctx context.Context) (float64, error) {
	c, err := t.config()
	if err != nil {
		return 0, err
	}
	s, err := sim.New(c)
	if err != nil {
		return 0, err
	}
	r, err := s.Run(ctx)
	if err != nil {
		return 0, err
	}
	possible := capacity / float64(t.calls) * float64(t.seconds)
	return float64(r.Clients[0].Windows[0].Good) / possible, nil
}

func (t *trial) config() (sim.Config, error) {
	back := sim.Service{Name: "back", Tasks: tasks, Ingress: new(ingress.Config), AcceptRatio: true}
	switch t.kind {
	case "cpu":
		back.Processors, back.CPU = each, sim.Exponential(work)
	case "pool":
		back.Processors, back.Slots, back.Wait = each, each, sim.Exponential(work)
	default:
		return sim.Config{}, fmt.Errorf("-kind %q: want cpu or pool", t.kind)
	}
	hop := sim.Constant(200 * time.Microsecond)
	front := sim.Service{
		Name: "front", Tasks: 4, Processors: 64,
		Calls: []sim.Edge{{To: "back", Times: t.calls, AtOnce: t.atOnce, Latency: hop, Leave: !t.stay, Retarget: true}},
	}
	end := warmUp + time.Duration(t.seconds)*time.Second
	return sim.Config{
		Seed: t.seed, Duration: end,
		Windows:  []sim.Window{{Name: "measured", From: warmUp, To: end}},
		Services: []sim.Service{back, front},
		Clients: []sim.Clients{{
			Name: "users", Count: 1000, Rate: t.load * capacity / float64(t.calls), Deadline: deadline,
			Call: sim.Edge{To: "front", Latency: hop, Leave: !t.stay},
		}},
	}, nil
}
