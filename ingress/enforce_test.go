package ingress

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A poolOf4 is a service with 4 slots of 20 ms behind a Server. Clients leave after the timeout.
type poolOf4 struct {
	server  *Server
	slots   chan struct{}
	random  *rand.Rand
	timeout time.Duration
}

// offer sends requests of two classes, whose key is the pool that they wait for, at random times,
// and returns which share of each was served in time.
func (c *poolOf4) offer(d time.Duration, critical, sheddable float64) (shares [2]float64) {
	var served, offered [2]int
	done := make(chan int, 1<<16)
	sent := 0
	for end := time.Now().Add(d); time.Now().Before(end); sent++ {
		time.Sleep(time.Duration(c.random.ExpFloat64() / (critical + sheddable) * float64(time.Second)))
		i, call := 0, spillway.Call{Key: "pool", Criticality: spillway.Critical}
		if c.random.Float64() > critical/(critical+sheddable) {
			i, call = 1, spillway.Call{Key: "pool", Criticality: spillway.Sheddable}
		}
		offered[i]++
		go func() { done <- c.request(call, i) }()
	}
	for range sent {
		if i := <-done; i >= 0 {
			served[i]++
		}
	}
	for i := range shares {
		shares[i] = float64(served[i]) / max(1, float64(offered[i]))
	}
	return shares
}

// request makes one request, and returns i if it was served in time, else -1.
func (c *poolOf4) request(call spillway.Call, i int) int {
	ctx, leave := context.WithTimeout(context.Background(), c.timeout)
	defer leave()
	slot, rejection := c.server.Enter(ctx, call, ratelimit.Caller{})
	if rejection.Rejected() {
		return -1
	}
	c.slots <- struct{}{} // the work is done although its client has left
	time.Sleep(20 * time.Millisecond)
	<-c.slots
	if ctx.Err() != nil {
		slot.Done(spillway.OutcomeAbandoned)
		return -1
	}
	slot.Done(spillway.OutcomeServed)
	return i
}

// A server that observed an overload, and then enforces, rejects nothing while it is quiet, and
// sheds the lower class first, as one that has enforced from the beginning.
func TestEnforceAfterObserve(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, 2 * time.Second, 20 * time.Second} {
		for seed := range uint64(3) {
			synctest.Test(t, func(t *testing.T) {
				s := must(t, Config{ShedMode: spillway.ModeObserve})
				s.core.State = func(time.Time) shed.State { return shed.State{Processors: 2} }
				c := &poolOf4{s, make(chan struct{}, 4), rand.New(rand.NewPCG(seed, 2)), timeout}
				c.offer(4*time.Second, 100, 250)
				c.offer(1500*time.Millisecond, 10, 20)
				if err := s.Update(Config{}); err != nil {
					t.Fatal(err)
				}
				quiet := c.offer(4*time.Second, 10, 20)
				busy := c.offer(4*time.Second, 100, 250)
				if quiet[0] < 1 || quiet[1] < 1 || busy[0] < 0.6 || busy[0] < busy[1] {
					t.Errorf("timeout %v, seed %d: CRITICAL and SHEDDABLE served %.3f of quiet load, %.3f of overload", timeout, seed, quiet, busy)
				}
			})
		}
	}
}
