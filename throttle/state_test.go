package throttle_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/throttle"
)

// send makes n calls 10 ms apart, which the backend answers with the outcome, and
// returns the time after the last.
func send(t *throttle.Throttle, now time.Time, n int, o spillway.Outcome) time.Time {
	for range n {
		now = now.Add(10 * time.Millisecond)
		if ticket, err := t.Admit(now, spillway.Call{}); err == nil {
			ticket.Settle(now, o)
		}
	}
	return now
}

// The state of a backend that fails and recovers, as a circuit breaker would report it.
func TestState(t *testing.T) {
	var changes []throttle.StateChange
	th, err := throttle.New(throttle.Config{
		OnStateChange: func(s throttle.StateChange) { changes = append(changes, s) },
		Rand:          rand.New(rand.NewPCG(1, 2)).Float64, // one goroutine calls it
	})
	if err != nil {
		t.Fatal(err)
	}
	state := func(now time.Time) throttle.State { return th.Stats(now)[spillway.Critical.Index()].State }
	now := time.Unix(1e9, 0)
	if now = send(th, now, 1000, spillway.OutcomeServed); state(now) != throttle.StateClosed || changes != nil {
		t.Errorf("healthy: %v, %v", state(now), changes)
	}
	last := now
	for range 2000 { // 100 calls per second; the backend can serve 25
		now = now.Add(10 * time.Millisecond)
		if ticket, err := th.Admit(now, spillway.Call{}); err == nil {
			o := spillway.OutcomeOverloaded
			if now.Sub(last) >= 40*time.Millisecond {
				o, last = spillway.OutcomeServed, now
			}
			ticket.Settle(now, o)
		}
	}
	if s := th.Stats(now)[spillway.Critical.Index()]; s.State != throttle.StateThrottling || s.Probability <= 0 || s.Probability >= 1 {
		t.Errorf("a quarter is accepted: %v at %v", s.State, s.Probability)
	}
	if now = send(th, now, 10000, spillway.OutcomeOverloaded); state(now) != throttle.StateProbing {
		t.Errorf("nothing is accepted: %v", state(now))
	}
	if now = send(th, now, 3000, spillway.OutcomeServed); state(now) != throttle.StateClosed {
		t.Errorf("recovered: %v", state(now))
	}
	was := throttle.StateClosed
	for i, c := range changes { // each begins where the one before ended
		if c.From != was || c.To == was || c.Criticality != spillway.Critical || c.Route != "" || c.Backend != "" {
			t.Errorf("change %d is %+v after %v", i, c, was)
		}
		was = c.To
	}
	if len(changes) < 3 || was != throttle.StateClosed {
		t.Errorf("changes %+v", changes)
	}
	now = send(th, now, 1000, spillway.OutcomeOverloaded)
	if s := state(now.Add(time.Hour)); s != throttle.StateClosed {
		t.Errorf("an hour later: %v, want that the throttle has forgotten", s)
	}
}

// The hook names the route; Stats has the worst state of all routes.
func TestStateOfRoutes(t *testing.T) {
	var routes []string
	r, err := throttle.NewRoutes(throttle.Config{OnStateChange: func(s throttle.StateChange) { routes = append(routes, s.Route) }})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	for i := range 4000 {
		now = now.Add(5 * time.Millisecond)
		of, o := throttle.Route{Name: "GET /good"}, spillway.OutcomeServed
		if i%2 == 0 && i > 0 {
			of, o = throttle.Route{Name: "GET /bad"}, spillway.OutcomeOverloaded
			if i == 2 {
				o = spillway.OutcomeServed // once, so that the route has a place
			}
		}
		if ticket, err := r.Admit(now, spillway.Call{}, of); err == nil {
			r.Settle(now, now, &ticket, of, o)
		}
	}
	if !slices.Contains(routes, "GET /bad") || slices.Contains(routes, "GET /good") {
		t.Errorf("changes of %q, want of the route that fails only", routes)
	}
	if s := r.Stats(now)[spillway.Critical.Index()]; s.State != throttle.StateProbing {
		t.Errorf("the worst state is %v, want probing", s.State)
	}
}

// A hook that runs while other goroutines change the state: its calls never overlap, and each
// continues where the last one ended.
func TestStateConcurrent(t *testing.T) {
	var (
		inside sync.Mutex
		last   throttle.State
		calls  int
	)
	th, err := throttle.New(throttle.Config{OnStateChange: func(s throttle.StateChange) {
		if !inside.TryLock() {
			t.Error("two calls of the hook at once")
			return
		}
		defer inside.Unlock()
		if s.From != last || s.To == last {
			t.Errorf("%v→%v after %v", s.From, s.To, last)
		}
		last, calls = s.To, calls+1
	}})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			now := time.Unix(1e9, 0)
			for j := range 20 {
				o := spillway.OutcomeServed
				if (i+j)%3 == 0 {
					o = spillway.OutcomeOverloaded
				}
				now = send(th, now, 200, o)
			}
		})
	}
	all.Wait()
	end := th.Stats(time.Unix(1e9, 0).Add(40 * time.Second))[spillway.Critical.Index()].State
	if calls == 0 || end != last {
		t.Errorf("%d calls; the last one reported %v, the state is %v", calls, last, end)
	}
}

// A hook that panics leaves the throttle usable.
func TestStatePanic(t *testing.T) {
	th, err := throttle.New(throttle.Config{OnStateChange: func(throttle.StateChange) { panic("hook") }})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	func() {
		defer func() { _ = recover() }()
		send(th, now, 1000, spillway.OutcomeOverloaded)
		t.Error("no panic")
	}()
	if s := th.Stats(now.Add(5 * time.Second)); s[spillway.Critical.Index()].State == throttle.StateClosed {
		t.Error("the state is closed")
	}
}

func TestStateText(t *testing.T) {
	for s, want := range map[throttle.State]string{0: "closed", 1: "throttling", 2: "probing", 3: "State(3)"} {
		text, err := s.MarshalText()
		if s.String() != want || (err == nil) != (s <= throttle.StateProbing) || err == nil && string(text) != want {
			t.Errorf("%d: %v, %q, %v", uint8(s), s, text, err)
		}
	}
}
