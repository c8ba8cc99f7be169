package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/sim"
)

// The ways of a task to make its calls, and what the back service is short of.
const (
	inTurn = "turn"
	atOnce = "once"
	cpu    = "cpu"
	pool   = "pool"
)

// The back service has 4 tasks, each with 4 processors or slots.
const (
	servers = 4
	each    = 4
	hop     = 200 * time.Microsecond // of a message, one way
)

// A trial is a cell of a table.
type trial struct {
	way     string
	calls   int // of a task
	kind    string
	load    float64       // in times of the capacity
	work    time.Duration // of a call, in the mean
	warmUp  time.Duration
	seconds int
	clients int
	tiers   int
	mixed   bool // classes
	beside  bool // tasks of one call are sent, too
	stay    bool // servers do not notice that a caller has left
	inTurns bool // callers choose servers in turn, as over sockets
	seed    uint64

	result string
}

// capacity is the calls per second that the back service can serve.
func (t *trial) capacity() float64 { return servers * each / t.work.Seconds() }

// end is when the last task begins that counts.
func (t *trial) end() time.Duration { return t.warmUp + time.Duration(t.seconds)*time.Second }

// deadline is that of a task: a hundred times what a call takes.
func (t *trial) deadline() time.Duration { return 100 * t.work }

// run sets the result: the share of the possible tasks that was served in time.
func (t *trial) run(ctx context.Context) error {
	s, err := sim.New(t.config())
	if err != nil {
		return err
	}
	r, err := s.Run(ctx)
	if err != nil {
		return err
	}
	possible := t.capacity() * float64(t.seconds)
	t.result = fmt.Sprintf("%.2f", float64(r.Clients[0].Windows[0].Good)*float64(t.calls)/possible)
	if t.beside {
		t.result += fmt.Sprintf("+%.2f", float64(r.Clients[1].Windows[0].Good)/possible)
	}
	return nil
}

// config describes the system. Services with several processors and no work are never short of any.
func (t *trial) config() sim.Config {
	c := sim.Config{Seed: t.seed, Duration: t.end() + t.deadline(), Windows: []sim.Window{{Name: "measured", From: t.warmUp, To: t.end()}}}
	back := t.edge("back")
	if t.tiers > 2 {
		c.Services = append(c.Services, service("middle", back))
		back = t.edge("middle")
	}
	c.Services = append(c.Services, t.back(), service("single", back))
	back.Times, back.AtOnce = t.calls, t.way == atOnce
	c.Services = append(c.Services, service("front", back))
	rate := t.load * t.capacity()
	if t.beside {
		rate /= 2
	}
	c.Clients = append(c.Clients, t.users("users", "front", rate/float64(t.calls)))
	if t.beside {
		c.Clients = append(c.Clients, t.users("singles", "single", rate))
	}
	return c
}

func (t *trial) users(name, to string, rate float64) sim.Clients {
	c := sim.Clients{Name: name, Count: t.clients, Rate: rate, Deadline: t.deadline(), Call: t.edge(to)}
	if t.mixed {
		c.Classes = [spillway.Criticalities]float64{0.2, 0.2, 0.5, 0.1}
	}
	return c
}

func (t *trial) edge(to string) sim.Edge {
	e := sim.Edge{To: to, Latency: sim.Constant(hop), Leave: !t.stay, Retarget: true}
	if t.inTurns {
		e.Balance = sim.RoundRobin
	}
	return e
}

// service returns one that only calls another one.
func service(name string, calls sim.Edge) sim.Service {
	return sim.Service{Name: name, Tasks: servers, Processors: 64, Calls: []sim.Edge{calls}}
}

func (t *trial) back() sim.Service {
	s := sim.Service{Name: "back", Tasks: servers, Processors: each, Ingress: new(ingress.Config), AcceptRatio: true}
	if t.kind == cpu {
		s.CPU = sim.Exponential(t.work)
	} else {
		s.Slots, s.Wait = each, sim.Exponential(t.work)
	}
	return s
}

// simulate runs trials, as many at once as there are processors. It returns the first error.
func simulate(trials []trial) error {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	next := make(chan *trial)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for t := range next {
				if err := t.run(ctx); err != nil {
					stop(err)
				}
			}
		})
	}
	for i := range trials {
		next <- &trials[i]
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}
