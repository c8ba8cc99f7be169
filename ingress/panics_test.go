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
		first, _ := enter(s, spillway.Call{})
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
		o.arm(func(e spillway.Event) bool { return e.Policy == "inflight" })
		panics(t, func() { first.Done(spillway.OutcomeServed) })
		if d := <-waited; d > 500*time.Millisecond {
			t.Errorf("the next request waited for %v", d)
		}
	})
}

// Nor does it leave the shadow of the request, for which Close waits, in the queue of a gate that observes.
func TestObserverPanicsBeforeTheShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o panicky
		s := must(t, Config{MaxInFlight: 1, InFlightMode: spillway.ModeObserve, Observer: &o})
		first, _ := enter(s, spillway.Call{})
		second, _ := enter(s, spillway.Call{})
		synctest.Wait()
		if n := s.Stats(time.Now()).InFlight.Waiting; n != 1 {
			t.Fatalf("%d shadows wait", n)
		}
		o.arm(func(e spillway.Event) bool { return e.Policy == "shed" })
		panics(t, func() { second.Done(spillway.OutcomeServed) })
		first.Done(spillway.OutcomeServed)
		s.shadows.Wait()
		if st := s.Stats(time.Now()).InFlight; st.InFlight != 0 || st.Waiting != 0 {
			t.Errorf("%d in flight, %d wait", st.InFlight, st.Waiting)
		}
	})
}

// An Observer that panics about a rejection leaves nothing in the queue of a gate that observes, where the request would wait.
func TestObserverPanicsWhileTheShadowWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o panicky
		s := must(t, Config{MaxInFlight: 1, InFlightMode: spillway.ModeObserve, Observer: &o})
		first, _ := enter(s, spillway.Call{})
		s.core.state = func(time.Time) shed.State { return shed.State{Processors: 1, Utilization: 2} }
		o.arm(func(e spillway.Event) bool { return e.Rejected && e.Policy == "shed" })
		panics(t, func() { enter(s, spillway.Call{Criticality: spillway.Sheddable}) })
		if n := s.Stats(time.Now()).InFlight.Waiting; n != 0 {
			t.Errorf("%d wait", n)
		}
		first.Done(spillway.OutcomeServed)
	})
}

// An Observer that panics in the goroutine of a shadow, where no caller can recover, does not end the process.
func TestObserverPanicsInTheShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o panicky
		s := must(t, Config{MaxInFlight: 1, InFlightMode: spillway.ModeObserve, ShedMode: spillway.ModeOff, Observer: &o})
		first, _ := enter(s, spillway.Call{})
		second, _ := enter(s, spillway.Call{})
		third, _ := enter(s, spillway.Call{})
		synctest.Wait()
		first.Done(spillway.OutcomeServed)
		o.arm(func(spillway.Event) bool { return true })
		second.Done(spillway.OutcomeServed)
		third.Done(spillway.OutcomeServed)
		s.shadows.Wait()
		if st := s.Stats(time.Now()).InFlight; o.at.Load() != nil || st.InFlight != 0 || st.Waiting != 0 {
			t.Errorf("panicked %v, %d in flight, %d wait", o.at.Load() == nil, st.InFlight, st.Waiting)
		}
	})
}

// A Signal that panics in the dispatcher does not end the process, and the waiters have their turn.
func TestSignalPanicsInTheDispatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{MaxInFlight: 1, Shed: shed.Config{MaxWait: 10 * time.Second}})
		var armed atomic.Int32
		s.core.state = func(time.Time) shed.State {
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

// In a silence the limit learns at once that a client has left, and so does the limit that observes: next to the enforced one, in
// place of it, or after a wait that the request did not share.
func TestClientLeavesInASilence(t *testing.T) {
	tickets := func(w *witness) (all [gates]spillway.Ticket) {
		all[shedGate].By = w
		return all
	}
	for name, slot := range map[string]func(w *witness) *Slot{
		"enforced": func(w *witness) *Slot { return &Slot{admission: Admission{tickets: tickets(w)}} },
		"enforced, another gate observes": func(w *witness) *Slot {
			return &Slot{admission: Admission{tickets: tickets(w), observed: new(observed)}}
		},
		"observes": func(w *witness) *Slot {
			return &Slot{admission: Admission{observed: &observed{Admission: Admission{tickets: tickets(w)}}}}
		},
		"observes, after a wait": func(w *witness) *Slot {
			return &Slot{shadow: &shadow{admission: &Admission{tickets: tickets(w)}}}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			ctx, cancel := context.WithCancel(t.Context())
			slot(&w).watch(ctx)
			cancel()
			synctest.Wait()
			if w.left != 1 {
				t.Errorf("%s: told %d times", name, w.left)
			}
		})
	}
}

// A shadow that waits when the client leaves, in a silence, leaves its queue, as the request would have.
func TestShadowLeavesWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{MaxInFlight: 1, InFlightMode: spillway.ModeObserve})
		first, _ := enter(s, spillway.Call{})
		s.heart.silent.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		second, _ := s.Enter(ctx, spillway.Call{}, ratelimit.Caller{})
		synctest.Wait()
		before := s.Stats(time.Now()).InFlight.Waiting
		cancel()
		synctest.Wait()
		if after := s.Stats(time.Now()).InFlight.Waiting; before != 1 || after != 0 {
			t.Errorf("%d waited before the client left, %d after", before, after)
		}
		second.Done(spillway.OutcomeAbandoned)
		first.Done(spillway.OutcomeServed)
	})
}

// A Signal that panics where there is no request, as for a listener that accepts connections, does so for the next request, once.
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
