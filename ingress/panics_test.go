package ingress

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// panicky is an Observer that panics at the next event that it is armed for.
type panicky struct {
	at atomic.Pointer[func(spillway.Event) bool]
}

func (o *panicky) arm(at func(spillway.Event) bool) { o.at.Store(&at) }

func (o *panicky) Observe(e spillway.Event) {
	if at := o.at.Load(); at != nil && (*at)(e) && o.at.CompareAndSwap(at, nil) {
		panic("observer")
	}
}

// panics fails unless f panics as the Observer does.
func panics(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if got := recover(); got != "observer" {
			t.Errorf("recovered %v", got)
		}
	}()
	f()
}

// In a bubble a Server that does not end is a deadlock, which fails.

// An Observer that panics at the end of a request loses no waiter its turn.
func TestObserverPanicsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o panicky
		s := must(t, Config{MaxInFlight: 1, Observer: &o, Shed: shed.Config{MaxWait: 10 * time.Second}})
		first, _ := enter(s, spillway.Call{Key: "first"})
		waited := make(chan time.Duration)
		go func() {
			came := time.Now()
			second, r := enter(s, spillway.Call{})
			if r.Rejected() {
				t.Errorf("the waiter: %v", r.Err)
			}
			second.Done(spillway.OutcomeServed)
			waited <- time.Since(came)
		}()
		time.Sleep(100 * time.Millisecond) // in a silence of a second the waiters are looked for in any case
		// The waiter may end before.
		o.arm(func(e spillway.Event) bool { return e.Policy == "inflight" && e.Call.Key == "first" })
		panics(t, func() { first.Done(spillway.OutcomeServed) })
		if d := <-waited; d > 500*time.Millisecond {
			t.Errorf("the next request waited for %v", d)
		}
	})
}

// Nor does it leave a request in the queue, or in flight, at a gate that observes: whether it
// panics about a rejection that another gate has made, about one that would have been, or at the
// end.
func TestObserverPanicsWhileItObserves(t *testing.T) {
	for name, at := range map[string]func(spillway.Event) bool{
		"rejected":       func(e spillway.Event) bool { return e.Rejected && e.Policy == "shed" },
		"would be":       func(e spillway.Event) bool { return e.Rejected && e.Policy == "ratelimit" },
		"not started":    func(e spillway.Event) bool { return e.Outcome == spillway.OutcomeNotStarted },
		"served, shed":   func(e spillway.Event) bool { return e.Policy == "shed" && e.Outcome == spillway.OutcomeServed },
		"served, others": func(e spillway.Event) bool { return e.Policy == "inflight" && e.Outcome == spillway.OutcomeServed },
	} {
		var o panicky
		s := must(t, Config{
			MaxInFlight: 1, InFlightMode: spillway.ModeObserve, Observer: &o,
			RateLimit: ratelimit.Config{Rate: 1e-3, BurstSeconds: 3e3}, RateLimitMode: spillway.ModeObserve,
		})
		first, _ := enter(s, spillway.Call{})
		o.arm(at)
		panics(t, func() {
			second, _ := enter(s, spillway.Call{})
			second.Done(spillway.OutcomeServed)
			s.core.State = func(time.Time) shed.State { return shed.State{Processors: 1, Utilization: 2} }
			for range 2 {
				enter(s, spillway.Call{Criticality: spillway.Sheddable})
			}
		})
		first.Done(spillway.OutcomeServed)
		if st := s.Stats(time.Now()).InFlight; o.at.Load() != nil || st.InFlight != 0 || st.Waiting != 0 {
			t.Errorf("%s: panicked %v, %d in flight, %d wait", name, o.at.Load() == nil, st.InFlight, st.Waiting)
		}
	}
}

// A Signal that panics in the dispatcher does not end the process, and the waiters have their turn.
func TestSignalPanicsInTheDispatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{MaxInFlight: 1, Shed: shed.Config{MaxWait: 10 * time.Second}})
		var armed atomic.Int32
		s.core.State = func(time.Time) shed.State {
			if armed.Add(-1) >= 0 {
				panic("signal")
			}
			return shed.State{Processors: 1}
		}
		first, _ := enter(s, spillway.Call{})
		s.dispatcher.idle.close()
		s.dispatcher.idle = nap{}
		time.AfterFunc(time.Second, func() {
			armed.Store(3)
			first.Done(spillway.OutcomeServed)
		})
		came := time.Now()
		second, r := enter(s, spillway.Call{})
		if d := time.Since(came); r.Rejected() || d > 2*time.Second || armed.Load() >= 0 {
			t.Errorf("waited for %v: %v; %d panics left", d, r.Err, armed.Load())
		}
		second.Done(spillway.OutcomeServed)
	})
}

// A witness counts clients that have left.
type witness struct{ left int }

func (w *witness) Settle(time.Time, spillway.Ticket, spillway.Outcome) {}
func (w *witness) Answer(time.Time, spillway.Ticket)                   {}
func (w *witness) Leave(time.Time, spillway.Ticket)                    { w.left++ }

// In a silence the limit learns at once that a client has left.
func TestClientLeavesInASilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		ctx, cancel := context.WithCancel(t.Context())
		p := new(Slot)
		p.admission.Shedder().By = &w
		p.watch(ctx)
		cancel()
		synctest.Wait()
		if w.left != 1 {
			t.Errorf("told %d times", w.left)
		}
	})
}

// A Signal that panics where there is no request, as for a listener that accepts connections,
// does so for the next request, once.
func TestSignalPanicsForNoRequest(t *testing.T) {
	broken := true
	s := must(t, Config{Load: load.Config{Signals: []load.Signal{{Name: "user", Read: func() float64 {
		if broken {
			panic("observer")
		}
		return 0
	}}}}})
	s.Work(time.Now())
	broken = false
	panics(t, func() { _, _ = enter(s, spillway.Call{}) })
	p, r := enter(s, spillway.Call{})
	if r.Rejected() {
		t.Fatal(r.Err)
	}
	p.Done(spillway.OutcomeServed)
}
