package requests

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// must returns a Core of a process with this state.
func must(tb testing.TB, c Config, state func(time.Time) shed.State) *Core {
	tb.Helper()
	core, err := New(c, Shell{State: state})
	if err != nil {
		tb.Fatal(err)
	}
	return core
}

// always returns a state that does not change.
func always(state shed.State) func(time.Time) shed.State {
	return func(time.Time) shed.State { return state }
}

// The signals are due every 10 ms, and after a step back of the clock.
func TestSignalsAreDue(t *testing.T) {
	c, now := must(t, Config{}, always(shed.State{Processors: 1})), time.Now()
	for _, row := range []struct {
		at, last time.Duration
		due      bool
	}{{0, 0, true}, {refreshEvery - 1, 0, false}, {refreshEvery, refreshEvery, true}, {refreshEvery - 1, refreshEvery, true}} {
		at := now.Add(row.at)
		if c.signals.due(at) != row.due {
			t.Errorf("due at %v: %v", row.at, !row.due)
		}
		if c.signals.refresh(c.settings.Load(), at, c.State); c.signals.last.Sub(now) != row.last {
			t.Errorf("refreshed at %v, want %v", c.signals.last.Sub(now), row.last)
		}
		c.signals.seen.Store(now.Add(row.last).UnixNano())
	}
}

// A waiting queue that is mostly full degrades, one that is mostly empty does not. Its capacity
// is that of all processors; no processor counts as one.
func TestDegradationByTheQueue(t *testing.T) {
	for _, row := range []struct {
		processors, waiting int
		degrades            bool
	}{{4, 160, true}, {4, 20, false}, {0, 40, true}, {0, 5, false}} {
		runnable, now := 0, time.Unix(1e9, 0)
		c := must(t, Config{}, func(time.Time) shed.State {
			return shed.State{Processors: row.processors, Runnable: runnable}
		})
		arrive := func(n int) {
			for range n {
				c.Enter(new(Admission), now, &spillway.Call{}, new(ratelimit.Caller))
			}
		}
		arrive(100)
		runnable = 1000
		arrive(row.waiting)
		if c.Waiting() != row.waiting {
			t.Fatalf("%+v: %d wait", row, c.Waiting())
		}
		for range 100 {
			now = now.Add(refreshEvery)
			c.signals.refresh(c.settings.Load(), now, c.State)
		}
		if got := !c.signals.degrader.Idle(); got != row.degrades {
			t.Errorf("%+v: degrades %v", row, got)
		}
	}
}

// A server that rejects calls of all classes reports so for each of them.
func TestAcceptRatioOfAllClasses(t *testing.T) {
	now := time.Unix(1e9, 0)
	c := must(t, Config{Internal: true}, always(shed.State{Processors: 1, Utilization: 2}))
	for range 100 {
		for class := spillway.Sheddable; class <= spillway.CriticalPlus; class++ {
			c.Enter(new(Admission), now, &spillway.Call{Criticality: class}, new(ratelimit.Caller))
		}
		now = now.Add(refreshEvery)
	}
	for class := spillway.Sheddable; class <= spillway.CriticalPlus; class++ {
		if got := c.AcceptRatio(class).Float(); got > 0.1 {
			t.Errorf("the accept ratio of %v is %v, and nothing is accepted", class, got)
		}
	}
}

// While no processor is free, a request waits for 1 s, which is longer than MaxWait. A request whose
// client leaves ends at once.
func TestWaitWithoutFreeProcessor(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		now := time.Unix(1e9, 0)
		c := must(t, Config{}, always(shed.State{Processors: 1, Runnable: 1000}))
		var a Admission
		s := c.Enter(&a, now, &spillway.Call{Criticality: spillway.Critical}, new(ratelimit.Caller))
		if s.Verdict != shed.Wait || s.For != time.Second {
			t.Fatalf("%+v, want a wait of 1 s", s)
		}
		left := errors.New("left")
		now = now.Add(s.For)
		if leaves {
			s, ok := a.Withdraw(now, left)
			if !ok || s.Verdict != shed.Rejected || !errors.Is(s.Err, left) {
				t.Errorf("of a client that has left: %+v", s)
			}
		} else if s, ok := a.Expire(now, new(ratelimit.Caller)); !ok || s.Verdict != shed.Rejected {
			t.Errorf("after 1 s without a free processor: %+v, want a rejection", s)
		}
		if n := c.Waiting(); n != 0 {
			t.Errorf("the client leaves: %v, and %d wait", leaves, n)
		}
	}
}

// What decides, and what is in flight, outlives all changes of the mode; what only observed does
// not.
func TestShedderAfterUpdate(t *testing.T) {
	modes := []spillway.Mode{spillway.ModeEnforce, spillway.ModeObserve, spillway.ModeOff}
	for _, from := range modes {
		for _, to := range modes {
			c := must(t, Config{Modes: Modes{Shed: from}}, nil)
			before := c.Shedder()
			if err := c.Update(Config{Modes: Modes{Shed: to}}); err != nil {
				t.Fatal(err)
			}
			after := c.Shedder()
			if after.Shedder != before.Shedder || after.Limit != before.Limit || (after.observer != nil) != (to == spillway.ModeObserve) || from == to && after != before {
				t.Errorf("%v to %v: %+v became %+v", from, to, before, after)
			}
		}
	}
}

// A call without a level gets one where it enters, and a decision before that draws the same one.
func TestLevelIsDrawn(t *testing.T) {
	random := 0.0
	core := must(t, Config{Rand: func() float64 { return random }}, always(shed.State{Processors: 1}))
	now := time.Unix(1e9, 0)
	for r, want := range map[float64]spillway.Level{0: 1, 0.5: 65, 1 - 0x1p-53: spillway.Levels} {
		random = r
		var call spillway.Call
		core.Reject(context.Background(), now, &call, &ratelimit.Caller{}, new(Rejection))
		random = 0.25
		var a Admission
		core.Enter(&a, now, &call, &ratelimit.Caller{})
		if call.Level != want || a.Call.Level != want {
			t.Errorf("random number %v: level %d, admitted with %d, want %d", r, call.Level, a.Call.Level, want)
		}
		a.Done(now, spillway.OutcomeServed)
	}
}

// A process that only forwards is not busy because many goroutines are ready to run.
func TestForwards(t *testing.T) {
	for _, only := range []bool{false, true} {
		c := must(t, Config{ProxyOnly: only}, always(shed.State{Processors: 1, Runnable: 5, CPU: 0.5, Utilization: 0.25}))
		want := shed.State{Processors: 1, Runnable: 5, CPU: 0.5, Utilization: 0.25}
		if only {
			want.Runnable = 0
		}
		if _, state := c.shedder(shedGate, time.Now(), c.settings.Load()); state != want {
			t.Errorf("forwards only: %v: %+v, want %+v", only, state, want)
		}
	}
}
