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

// signalsEvery is the interval of degradation and accept ratios.
const signalsEvery = 10 * time.Millisecond

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
		if got := c.measures().Reference; got != want {
			t.Errorf("%v, want %v", got, want)
		}
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
			s.core.State = func(time.Time) shed.State { return shed.State{Processors: 1, Utilization: row.utilization} }
			for range 400 {
				p, _ := enter(s, spillway.Call{Criticality: spillway.Sheddable})
				p.Done(spillway.OutcomeServed)
				time.Sleep(signalsEvery)
			}
			if got := s.Degradation(spillway.Sheddable) != spillway.DegradationNone; got != row.degrades {
				t.Errorf("%+v: degrades %v", row, got)
			}
		})
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
		enters := func(c *spillway.Call) bool {
			return !p.EnterAt(t.Context(), s, time.Now(), c, &ratelimit.Caller{}).Rejected()
		}
		waited := false
		for range 2 {
			if !enters(&spillway.Call{Key: "work"}) {
				t.Fatal("rejected")
			}
			waited = p.Waited()
			p.Done(spillway.OutcomeServed)
		}
		if !enters(&spillway.Call{Key: "health"}) || !waited || p.Waited() || p.Call().Key != "" {
			t.Errorf("request before waited: %v, exempt one: %v, call %+v", waited, p.Waited(), p.Call())
		}
		p.Done(spillway.OutcomeServed)
	})
}

// TestAcceptRatioOfEachGate: what each gate rejects for the task counts, whatever the others do.
// A quota does not, nor does a gate that observes, and at an edge it must be asked for.
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
				time.Sleep(signalsEvery)
			}
			ratio := s.core.AcceptRatio(spillway.Critical).Float()
			if ratio < row.least || ratio > row.most {
				t.Errorf("%s: the accept ratio is %v, want %v to %v", name, ratio, row.least, row.most)
			}
			all.Wait()
		})
	}
}
