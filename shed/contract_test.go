package shed_test

import (
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/spilltest"
)

// A gate is a Shedder before a limit, for requests that do not wait.
type gate struct {
	shed *shed.Shedder

	mu     sync.Mutex
	waiter shed.Waiter
}

func (g *gate) Admit(now time.Time, call spillway.Call) (spillway.Ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.shed.Arrive(now, &call, &idle, &g.waiter)
	if d.Verdict == shed.Wait {
		g.shed.Expire(&g.waiter)
		return spillway.Ticket{}, g.waiter.Err
	}
	return d.Ticket, d.Err
}

func TestContract(t *testing.T) {
	spilltest.TestGate(t, func(t *testing.T) spillway.Gate {
		return &gate{shed: limited(t, concurrency.Config{Fixed: true, MaxInFlight: 5})}
	})
}
