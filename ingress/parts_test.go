package ingress

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A token that comes at the deadline comes too late. The level is the time to the deadline, in
// percent of the wait.
func TestTokenAtTheDeadline(t *testing.T) {
	for deadline, level := range map[time.Duration]float64{50 * time.Millisecond: 50, 100 * time.Millisecond: 100, 100*time.Millisecond + 1: 0} {
		synctest.Test(t, func(t *testing.T) {
			s := must(t, Config{RateLimit: ratelimit.Config{Rate: 10, BurstSeconds: 0.1, QueueDepth: 2}, ShedMode: spillway.ModeOff})
			first, _ := enter(s, spillway.Call{})
			first.Done(spillway.OutcomeServed)
			p, r := enter(s, spillway.Call{Deadline: time.Now().Add(deadline)})
			p.Done(spillway.OutcomeServed)
			e, _ := errors.AsType[*spillway.RejectedError](r.Err)
			if r.Rejected() != (level > 0) || level > 0 && e.Level != level {
				t.Errorf("a deadline in %v: %v, want the level %v", deadline, r.Err, level)
			}
		})
	}
}

// The measures are compared with the thresholds of the shedder, or with Load.Reference.
func TestReferenceOfTheMeasures(t *testing.T) {
	own, other := load.Thresholds{1, 2, 3, 4}, load.Thresholds{5, 6, 7, 8}
	for want, c := range map[load.Thresholds]Config{
		own:   {Shed: shed.Config{Thresholds: own}},
		other: {Shed: shed.Config{Thresholds: own}, Load: load.Config{Reference: other}},
	} {
		if got := c.meter().Reference; got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// The signals are due every 10 ms, and after a step back of the clock.
func TestSignalsAreDue(t *testing.T) {
	s := must(t, Config{})
	c, now := &s.core, time.Now()
	for _, row := range []struct {
		at, last time.Duration
		due      bool
	}{{0, 0, true}, {refreshEvery - 1, 0, false}, {refreshEvery, refreshEvery, true}, {refreshEvery - 1, refreshEvery, true}} {
		at := now.Add(row.at)
		if c.signals.due(at) != row.due {
			t.Errorf("due at %v: %v", row.at, !row.due)
		}
		if c.refresh(c.settings.Load(), at); c.signals.last.Sub(now) != row.last {
			t.Errorf("refreshed at %v, want %v", c.signals.last.Sub(now), row.last)
		}
		c.signals.seen.Store(now.Add(row.last).UnixNano())
	}
}

// The default thresholds count: a process with low utilization degrades nothing, a process just
// below the first threshold, where nothing is rejected yet, degrades the lowest class, if the
// shedder enforces.
func TestDegradationWithoutThresholds(t *testing.T) {
	for _, row := range []struct {
		utilization float64
		mode        spillway.Mode
		degrades    bool
	}{
		{0.1, spillway.ModeEnforce, false}, {0.74, spillway.ModeEnforce, false}, {0.77, spillway.ModeEnforce, true},
		{0.95, spillway.ModeEnforce, true}, {0.95, spillway.ModeObserve, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := must(t, Config{ShedMode: row.mode})
			s.core.state = func(time.Time) shed.State { return shed.State{Processors: 1, Utilization: row.utilization} }
			for range 400 {
				p, _ := enter(s, spillway.Call{Criticality: spillway.Sheddable})
				p.Done(spillway.OutcomeServed)
				time.Sleep(refreshEvery)
			}
			if got := s.Degradation(spillway.Sheddable) != spillway.DegradationNone; got != row.degrades {
				t.Errorf("%+v: degrades %v", row, got)
			}
		})
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
		c, err := NewCore(Config{}, func(time.Time) shed.State {
			return shed.State{Processors: row.processors, Runnable: runnable}
		})
		if err != nil {
			t.Fatal(err)
		}
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
			c.refresh(c.settings.Load(), now)
		}
		if got := !c.signals.degrader.Idle(); got != row.degrades {
			t.Errorf("%+v: degrades %v", row, got)
		}
	}
}

// A server that rejects calls of all classes reports so for each of them.
func TestAcceptRatioOfAllClasses(t *testing.T) {
	now := time.Unix(1e9, 0)
	c, err := NewCore(Config{Trust: Trust{Boundary: Internal}}, func(time.Time) shed.State { return shed.State{Processors: 1, Utilization: 2} })
	if err != nil {
		t.Fatal(err)
	}
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

// The caller is wanted by a rate limit, which may exempt it.
func TestWantsCaller(t *testing.T) {
	for wants, c := range map[bool]Config{false: {}, true: {RateLimit: ratelimit.Config{Rate: 1}}} {
		if must(t, c).WantsCaller() != wants {
			t.Errorf("%+v: %v", c, !wants)
		}
	}
}

// While no processor is free, a request waits for 1 s, which is longer than MaxWait. A request whose
// client leaves ends at once.
func TestWaitWithoutFreeProcessor(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		now := time.Unix(1e9, 0)
		c, err := NewCore(Config{}, func(time.Time) shed.State { return shed.State{Processors: 1, Runnable: 1000} })
		if err != nil {
			t.Fatal(err)
		}
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

// What decides, and what is in flight, outlives all changes of the mode; what only observed does not.
func TestShedderAfterUpdate(t *testing.T) {
	modes := []spillway.Mode{spillway.ModeEnforce, spillway.ModeObserve, spillway.ModeOff}
	for _, from := range modes {
		for _, to := range modes {
			c, err := NewCore(Config{ShedMode: from}, nil)
			if err != nil {
				t.Fatal(err)
			}
			before := c.shed()
			if err := c.Update(Config{ShedMode: to}); err != nil {
				t.Fatal(err)
			}
			after := c.shed()
			if after.Shedder != before.Shedder || after.limit != before.limit || (after.observer != nil) != (to == spillway.ModeObserve) || from == to && after != before {
				t.Errorf("%v to %v: %+v became %+v", from, to, before, after)
			}
		}
	}
}

// A wait of 5 ms is one to tell callers of.
func TestWaited(t *testing.T) {
	for rate, waited := range map[float64]bool{250: false, 200: true, 100: true} {
		synctest.Test(t, func(t *testing.T) {
			s := must(t, Config{RateLimit: ratelimit.Config{Rate: rate, BurstSeconds: 1 / rate, QueueDepth: 1}, ShedMode: spillway.ModeOff})
			for i, want := range []bool{false, waited} {
				p, r := enter(s, spillway.Call{})
				if r.Rejected() || p.Waited() != want {
					t.Errorf("request %d at %v per second: has waited is %v", i, rate, !want)
				}
				p.Done(spillway.OutcomeServed)
			}
		})
	}
}

// An exempt request has not waited, though its Slot was that of one that has.
func TestExemptHasNotWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must(t, Config{
			RateLimit: ratelimit.Config{Rate: 1, BurstSeconds: 1, QueueDepth: 1}, ShedMode: spillway.ModeOff,
			Exempt: func(call spillway.Call) bool { return call.Key == "health" },
		})
		var p Slot
		enters := map[string]func(*spillway.Call) bool{
			"EnterAt": func(c *spillway.Call) bool {
				return !p.EnterAt(t.Context(), s, time.Now(), c, &ratelimit.Caller{}).Rejected()
			},
			"AdmitAt": func(c *spillway.Call) bool {
				return p.AdmitAt(t.Context(), s, time.Now(), c, &ratelimit.Caller{}, new(Rejection))
			},
		}
		for name, enters := range enters {
			waited := false
			for range 2 {
				if !enters(&spillway.Call{Key: "work"}) {
					t.Fatal(name, ": rejected")
				}
				waited = p.Waited()
				p.Done(spillway.OutcomeServed)
			}
			if !enters(&spillway.Call{Key: "health"}) || !waited || p.Waited() || p.Call().Key != "" {
				t.Errorf("%s: request before waited: %v, exempt one: %v, call %+v", name, waited, p.Waited(), p.Call())
			}
			p.Done(spillway.OutcomeServed)
		}
	})
}

// TestAcceptRatioOfEachGate: what each gate rejects for the task counts, whatever the others do. A quota does not, nor does a gate that
// observes, and at an edge it must be asked for.
func TestAcceptRatioOfEachGate(t *testing.T) {
	internal := Trust{Boundary: Internal}
	limit := ratelimit.Config{Rate: 10}
	customers, err := quota.NewLocal(quota.LocalConfig{Customers: map[string]quota.Limit{"a": {Rate: 10}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		c           Config
		least, most float64
	}{
		"rate limit":                    {Config{Trust: internal, RateLimit: limit}, .05, .2},
		"rate limit, shedder off":       {Config{Trust: internal, RateLimit: limit, ShedMode: spillway.ModeOff}, .05, .2},
		"rate limit that observes":      {Config{Trust: internal, RateLimit: limit, RateLimitMode: spillway.ModeObserve}, 1, 1},
		"in flight":                     {Config{Trust: internal, MaxInFlight: 1}, 0, .2},
		"in flight, shedder off":        {Config{Trust: internal, MaxInFlight: 1, ShedMode: spillway.ModeOff}, 0, .2},
		"quota":                         {Config{Trust: internal, Quota: quota.Config{Allocator: customers}}, 1, 1},
		"at an edge":                    {Config{RateLimit: limit}, 1, 1},
		"at an edge that is told to":    {Config{RateLimit: limit, Trust: Trust{AcceptRatio: true}}, .05, .2},
		"nothing rejects, and edge too": {Config{Trust: Trust{AcceptRatio: true}}, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := must(t, row.c)
			var all sync.WaitGroup
			for range 500 {
				all.Go(func() {
					p, r := enter(s, spillway.Call{Customer: "a"})
					if r.Rejected() {
						return
					}
					if row.c.MaxInFlight > 0 {
						time.Sleep(time.Second)
					}
					p.Done(spillway.OutcomeServed)
				})
				time.Sleep(refreshEvery)
			}
			ratio := s.core.AcceptRatio(spillway.Critical).Float()
			if ratio < row.least || ratio > row.most {
				t.Errorf("%s: the accept ratio is %v, want %v to %v", name, ratio, row.least, row.most)
			}
			all.Wait()
		})
	}
}
